// NodeAgent, the end: carries out what the Conclusion table decides.
#include "agent/clock_ms.h"
#include "agent/d_state.h"
#include "agent/node_agent.h"
#include "agent/tell_outcome.h"
#include "base/log.h"

#include <signal.h>

#include <algorithm>

namespace lockstep::agent {
namespace {
constexpr std::chrono::milliseconds kStagePause{2};
}  // namespace

// Every step of the end goes through here; see conclusion.h.
void NodeAgent::conclude(Conclusion::Event event) {
  const Conclusion::Stage before = conclusion_.stage();
  const Conclusion::Actions actions = conclusion_.on(event);
  if (conclusion_.stage() != before) stop_waiting_in_stage();
  carry_out(actions);
}

void NodeAgent::stop_waiting_in_stage() {
  stage_timer_.cancel();
  stage_poll_.cancel();
}

// For callbacks of what the next stages release.
void NodeAgent::conclude_soon(Conclusion::Event event) {
  stage_poll_.start({}, [this, event] { conclude(event); });
}

void NodeAgent::begin_conclusion() {
  waiting_timer_.cancel();
  barrier_timer_.cancel();
  const bool failed =
      group_.outcome() == Outcome::failed || group_.outcome() == Outcome::peer_failed;
  left_behind_ = containment_.leftovers();
  carry_out(conclusion_.begin(
      {.leftovers = left_behind_.size(),
       .succeeded = group_.outcome() == Outcome::succeeded,
       .exchanges_reports = failed && rendezvous_open_ && round_.group_world_size > 1,
       .in_rendezvous = rendezvous_open_}));
}

void NodeAgent::carry_out(const Conclusion::Actions& actions) {
  for (const Conclusion::Action& action : actions)
    carry_out(action);
}

void NodeAgent::carry_out(const Conclusion::Action& action) {
  using Act = Conclusion::Act;
  switch (action.act) {
    case Act::arm:
      return stage_timer_.start(action.time, [this] { conclude(Conclusion::Event::time_over); });
    case Act::terminate_leftovers:
      for (const pid_t pid : left_behind_)
        kill(pid, SIGTERM);
      return;
    case Act::watch_leftovers:
      if (containment_.leftovers().empty()) return conclude(Conclusion::Event::leftovers_gone);
      return stage_poll_.start(kStagePause, [this, action] { carry_out(action); });
    case Act::kill_leftovers:
      return sweep_.start(action.time, [this] { conclude(Conclusion::Event::leftovers_gone); });
    case Act::say_leftovers:
      return log::info("workers left {} processes behind; they were ended", left_behind_.size());
    case Act::exchange_reports:
      return exchange_reports(action.time);
    case Act::tell_outcome:
      return tell_outcome();
    case Act::leave:
      return leave_rendezvous();
    case Act::say_staying:
      return log::warning(
          "waiting up to {} s for the other nodes to hear that the job has ended here",
          std::chrono::ceil<std::chrono::seconds>(action.time).count());
    case Act::close:
      return close();
    case Act::watch_console:
      if (console_.pending(logs::Stream::out) == 0 && console_.pending(logs::Stream::err) == 0)
        return conclude(Conclusion::Event::console_drained);
      return stage_poll_.start(kStagePause, [this, action] { carry_out(action); });
    case Act::stop:
      return loop_.stop();
  }
}

JobEnd NodeAgent::job_end() const {
  JobEnd end;
  end.outcome = group_.outcome();
  end.title = config_.entrypoint;
  end.run_id = config_.run_id;
  end.node = node_name_;
  end.signal = unlisted_signal_ != 0 ? unlisted_signal_ : group_.signal();
  end.default_signal = unlisted_signal_ != 0;
  end.why_stopped = why_stopped_;
  end.start_error = start_error_;
  end.rendezvous_error = rendezvous_error_;
  end.failures = failures_;
  end.stop_sent_ms = stop_sent_ms_;
  return end;
}

void NodeAgent::tell_outcome() {
  if (group_.abandoned()) name_the_unkillable();
  for (Worker& worker : workers_) {
    if (worker.capture) worker.capture->drain_now();
    worker.capture.reset();
  }
  history_.job_ended(unix_ms());
  const JobEnd end = job_end();
  const FailureReport own = own_report(end);
  const FailureReport whole = whole_report(own, reports_);
  exit_code_ = exit_code(end, whole, config_.exit_code);
  agent::tell_outcome(end, own, whole, history_,
                      {config_, environment_, console_, run_dir_ ? &*run_dir_ : nullptr});
}

void NodeAgent::close() {
  waiting_timer_.cancel();
  remove_unused_logs();
  rendezvous_.reset();
  store_.reset();
  health_server_.reset();
  containment_.end();
}

// Not one worker ever ran: bad input leaves no directory behind. Neither does a job that wrote no
// file, where the directory is of our choice.
void NodeAgent::remove_unused_logs() const {
  const bool ran = std::any_of(workers_.begin(), workers_.end(),
                               [](const Worker& w) { return w.child.has_value(); });
  if (!run_dir_) return;
  if (!ran && attempts_ <= 1) return run_dir_->remove_unused();
  if (!config_.logs.base_dir) run_dir_->remove_empty();
}

void NodeAgent::name_the_unkillable() const {
  for (const Worker& worker : workers_) {
    if (!worker.child || !worker.child->alive()) continue;
    const pid_t pid = worker.child->pid();
    log::error("process {} did not exit after SIGKILL (it is {}); it was abandoned", pid,
               what_holds("/proc", pid));
  }
}

}  // namespace lockstep::agent
