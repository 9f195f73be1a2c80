// Carries out the actions of the Conclusion table.
#include "agent/end_of_job.h"

#include "agent/tell_outcome.h"
#include "base/clock_ms.h"
#include "base/log.h"

#include <signal.h>

#include <chrono>
#include <utility>

namespace lockstep::agent {
namespace {

// Pause between two looks at leftovers or at the console: short, since the user waits for the exit.
constexpr std::chrono::milliseconds kLookEvery{2};
// Time for the notice of the job's end to reach a webhook.
constexpr std::chrono::seconds kNoticeTime{5};

rendezvous::Departure departure_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::succeeded:
    case Outcome::spare:
      return rendezvous::Departure::succeeded;
    case Outcome::signaled:
    case Outcome::signaled_early:
    case Outcome::stuck:
      return rendezvous::Departure::stopped;
    case Outcome::failed:
    case Outcome::peer_failed:
    case Outcome::no_rendezvous:
    case Outcome::spawn_failed:
      break;
  }
  return rendezvous::Departure::failed;
}

}  // namespace

EndOfJob::EndOfJob(const Node& node, Owners owners)
    : node_(node),
      owners_(owners),
      conclusion_({.shutdown = node.config.shutdown_timeout, .leave = node.config.leave_timeout}),
      limit_(owners.loop),
      next_(owners.loop) {}

void EndOfJob::begin(JobEnd end) {
  end_ = std::move(end);
  // In the next turn: NodeAgent still carries out actions of the table.
  next_.start({}, [this] { enter(); });
}

void EndOfJob::enter() {
  leftovers_ = owners_.workers.leftovers();
  const bool open = owners_.membership.is_open();
  const bool failed = end_.outcome == Outcome::failed || end_.outcome == Outcome::peer_failed;
  const bool has_peers = open && owners_.membership.round().group_world_size > 1;
  carry_out(conclusion_.begin({.leftovers = leftovers_.size(),
                               .succeeded = end_.outcome == Outcome::succeeded,
                               .exchanges_reports = failed && has_peers,
                               .in_rendezvous = open}));
}

// A timer belongs to the stage that started it: cancel both when the stage changes.
void EndOfJob::feed(Conclusion::Event event) {
  const Conclusion::Stage before = conclusion_.stage();
  const Conclusion::Actions actions = conclusion_.on(event);
  if (conclusion_.stage() != before) {
    limit_.cancel();
    next_.cancel();
  }
  carry_out(actions);
}

// Feeds an event in the next turn of the loop. For callbacks of objects that a later stage
// destroys.
void EndOfJob::feed_soon(Conclusion::Event event) {
  next_.start({}, [this, event] { feed(event); });
}

void EndOfJob::carry_out(const Conclusion::Actions& actions) {
  for (const Conclusion::Action& action : actions)
    carry_out(action);
}

void EndOfJob::carry_out(const Conclusion::Action& action) {
  using Act = Conclusion::Act;
  switch (action.act) {
    case Act::arm:
      return limit_.start(action.time, [this] { feed(Conclusion::Event::time_over); });
    case Act::terminate_leftovers:
      return terminate_leftovers();
    case Act::watch_leftovers:
      return watch_leftovers();
    case Act::kill_leftovers:
      return owners_.workers.sweep_leftovers(action.time,
                                             [this] { feed(Conclusion::Event::leftovers_gone); });
    case Act::say_leftovers:
      return log::info("workers left {} processes behind; they were ended", leftovers_.size());
    case Act::exchange_reports:
      return exchange_reports(action.time);
    case Act::tell_outcome:
      return tell();
    case Act::leave:
      return leave();
    case Act::say_staying:
      return log::warning(
          "waiting up to {} s for the other nodes to leave: the job has ended on this node",
          std::chrono::ceil<std::chrono::seconds>(action.time).count());
    case Act::close:
      return close();
    case Act::watch_console:
      return watch_console();
    case Act::stop:
      // Not earlier: the end of a PID namespace also ends the helpers that tell of the job's end.
      owners_.containment.end();
      return owners_.loop.stop();
  }
}

void EndOfJob::terminate_leftovers() const {
  for (const pid_t pid : leftovers_)
    kill(pid, SIGTERM);
}

void EndOfJob::watch_leftovers() {
  if (owners_.workers.leftovers().empty()) return feed(Conclusion::Event::leftovers_gone);
  next_.start(kLookEvery, [this] { watch_leftovers(); });
}

void EndOfJob::exchange_reports(Conclusion::Duration limit) {
  end_.failures = owners_.workers.failures();
  owners_.membership.exchange_reports(
      failures_json(own_report(end_)), limit, [this](std::vector<rendezvous::NodeReport> reports) {
        // A late answer must not move a later stage.
        if (conclusion_.stage() != Conclusion::Stage::exchanging_reports) return;
        reports_ = std::move(reports);
        feed_soon(Conclusion::Event::reports_came);
      });
}

void EndOfJob::tell() {
  // Write out what the workers have printed first: the report comes last.
  owners_.workers.name_the_abandoned();
  owners_.workers.close_output();
  owners_.history.job_ended(unix_ms());
  end_.failures = owners_.workers.failures();
  const FailureReport own = own_report(end_);
  const FailureReport whole = whole_report(own, reports_);
  exit_code_ = agent::exit_code(end_, whole, node_.config.exit_code);
  told_ = io::Clock::now();
  owners_.chronicle.ended(outcome_line(whole, owners_.history));
  std::vector<std::string> events;
  if (node_.config.report_file) events = owners_.chronicle.latest();
  tell_outcome(
      end_, own, whole, owners_.history,
      {node_.config, node_.environment, owners_.console, owners_.workers.logs().run_dir(),
       owners_.chronicle.goodput(), owners_.chronicle.worst_straggler(), std::move(events)});
}

void EndOfJob::leave() {
  owners_.membership.leave(departure_of(end_.outcome),
                           [this] { feed_soon(Conclusion::Event::departed); });
}

void EndOfJob::close() {
  owners_.workers.logs().remove_unused(owners_.workers.has_run() ||
                                       owners_.history.attempts_total() > 1);
  owners_.membership.close();
  owners_.health_port.reset();
}

void EndOfJob::watch_console() {
  const bool telling =
      owners_.chronicle.is_telling() && told_ && io::Clock::now() - *told_ < kNoticeTime;
  if (!telling && owners_.console.pending(logs::Stream::out) == 0 &&
      owners_.console.pending(logs::Stream::err) == 0)
    return feed(Conclusion::Event::console_drained);
  next_.start(kLookEvery, [this] { watch_console(); });
}

}  // namespace lockstep::agent
