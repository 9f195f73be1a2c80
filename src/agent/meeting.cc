// NodeAgent and the other nodes: joining rounds, hearing of failures elsewhere and telling of one's
// own, and taking leave.
#include "agent/node_agent.h"
#include "base/log.h"
#include "base/text.h"
#include "host/port_owner.h"
#include "rendezvous/host_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::agent {
namespace {

constexpr std::chrono::seconds kExplainFirst{5};
constexpr std::chrono::seconds kExplainEvery{10};
constexpr std::chrono::seconds kExplainStaying{1};
constexpr std::chrono::seconds kExplainSeldom{300};  // nothing new: a spare may wait for days
constexpr std::size_t kMostWords = 2000;             // of what other nodes say, or are called

}  // namespace

void NodeAgent::join() {
  barrier_timer_.cancel();
  pause_.cancel();
  if (attempts_ == 0) return join_round();
  sweep_.start(Conclusion::kKillLimit, [this] { join_round(); });
}

void NodeAgent::join_round() {
  emit("RENDEZVOUS", nullptr, 0.0);
  explain_waiting();
  const auto go = [this] {
    rendezvous_->join([this](Result<std::optional<Round>> outcome) { joined(std::move(outcome)); });
  };
  if (rendezvous_open_) return go();
  rendezvous_->open([this, go](const Result<void>& opened) {
    if (!opened) return no_rendezvous(opened.error());
    rendezvous_open_ = true;
    if (group_.state() == State::joining) go();
  });
}

void NodeAgent::joined(Result<std::optional<Round>> outcome) {
  waiting_timer_.cancel();
  if (group_.state() != State::joining) return;  // a signal came first
  if (!outcome) return no_rendezvous(std::move(outcome).error());
  if (!*outcome) {
    if (attempts_ == 0)
      log::warning("the job has ended; this node was a spare and was never used: nothing ran here");
    else
      log::info("the job has ended; this node was a spare in the end");
    return apply(group_.on({EventKind::spare_over}));
  }
  counted_ = (*outcome)->restarts != round_.restarts;
  round_ = **outcome;
  // Whoever has read of waiting reads of its end.
  if (!explained_.empty())
    log::warning(
        "waited for {} s: {}",
        std::chrono::round<std::chrono::seconds>(io::Clock::now() - waiting_since_).count(),
        config_.min_nodes == config_.max_nodes
            ? fmt::format("all {} nodes are here", round_.group_world_size)
            : fmt::format("{} nodes are here", round_.group_world_size));
  if (const Status sane = rendezvous::check_ranks(round_, config_.nproc); !sane)
    return no_rendezvous(sane.error());
  for (const std::string& note : round_.notes)
    if (std::find(said_.begin(), said_.end(), note) == said_.end())
      log::warning("{}", printable(note, kMostWords));
  said_ = round_.notes;
  if (round_.group_world_size > 1)
    log::info("round {}: node {} of {}, ranks {} to {} of {}, workers meet at {}:{}", round_.number,
              round_.group_rank, round_.group_world_size, round_.base_rank,
              round_.base_rank + config_.nproc - 1, round_.world_size,
              printable(round_.master_addr), round_.master_port);
  if (attempts_ == 0) {
    // Not earlier: who never gets a round leaves no directory behind.
    if (const Status opened = open_logs(); !opened) return no_rendezvous(opened.error());
  }
  apply(group_.on({EventKind::joined, round_.restarts, round_.max_restarts, hold_restart()}));
}

void NodeAgent::no_rendezvous(Error error) {
  waiting_timer_.cancel();
  rendezvous_error_ = std::move(error);
  apply(group_.on({EventKind::join_failed}));
}

Result<rendezvous::StorePlace> NodeAgent::offer_store(const std::string& addr) {
  if (store_) {
    store_->purge();
    return rendezvous::StorePlace{addr, store_->port()};
  }
  store::ServerOptions options;
  options.host = rendezvous::listening_place(addr);
  // Of several nodes only the static backend has a port that all know beforehand, and its own
  // store.
  options.port = config_.private_store || config_.max_nodes > 1 ? 0 : config_.master_port;
  auto server = store::Server::listen(loop_, options);
  if (!server) {
    Error error = std::move(server).error();
    host::name_port_holder(error, options.port);
    if (error.code == Errc::already_exists)
      error.hint =
          "choose another --master-port, or leave it out: a single node then takes a free one";
    return Failure(std::move(error));
  }
  store_ = std::move(*server);
  return rendezvous::StorePlace{addr, store_->port()};
}

void NodeAgent::on_interruption(const rendezvous::Interruption& interruption) {
  const bool end = interruption.kind == rendezvous::Interruption::Kind::end;
  if (group_.state() == State::finished) return;
  why_stopped_ = printable(interruption.why, kMostWords);
  if (!group_.stop_ordered())
    log::warning("{} the workers of this node: {}", end ? "ending" : "stopping", why_stopped_);
  const auto actions = group_.on({end ? EventKind::end : EventKind::rejoin});
  // A worker's failure here was the lost node's fault, where the group now joins because of that.
  const bool explains =
      !end && (group_.cause() == Cause::rejoin || group_.state() == State::joining);
  history_.attempt_ends(AttemptEnd::nodes, why_stopped_, explains);
  apply(actions);
}

void NodeAgent::tell_failure(bool final) {
  std::string line = start_error_ ? fmt::format("workers on {} could not be started: {}",
                                                node_name_, start_error_->message)
                                  : why_stopped_;
  if (!failures_.empty()) line = failure_line(failures_.back());
  rendezvous_->tell_failure(line, final);
}

void NodeAgent::enter_barrier() {
  explain_waiting();
  const auto over = [this] {
    waiting_timer_.cancel();
    barrier_timer_.cancel();
    apply(group_.on({EventKind::barrier_over}));
  };
  const auto limit = config_.exit_barrier_timeout;
  if (limit.count() == 0) return barrier_timer_.start({}, over);
  // Backends with a barrier of torchrun's have this limit too, and more to say at its end.
  barrier_timer_.start(limit + std::chrono::milliseconds(500), [limit, over] {
    log::warning("the workers of other nodes still run after {} s; this node does not wait longer",
                 limit.count());
    over();
  });
  rendezvous_->finish([over](const Result<void>& all) {
    if (!all) log::warning("{}", all.error().message);
    over();
  });
}

// Whoever waits says for whom, again and again.
void NodeAgent::explain_waiting() {
  waiting_since_ = io::Clock::now();
  explained_.clear();
  explain_again(kExplainFirst);
}

void NodeAgent::explain_again(io::Duration pause) {
  waiting_timer_.start(pause, [this, pause] {
    const auto waited = std::chrono::round<std::chrono::seconds>(io::Clock::now() - waiting_since_);
    std::string text = printable(rendezvous_->waiting_for(), kMostWords);
    if (!text.empty()) {
      const auto until = rendezvous_->gives_up_at().value_or(io::TimePoint::min());
      const auto left = std::chrono::round<std::chrono::seconds>(until - io::Clock::now());
      log::warning("waiting for {} s: {}{}", waited.count(), text,
                   until > io::Clock::now() ? fmt::format("; gives up in {} s", left.count()) : "");
    }
    const bool news = text != explained_;
    explained_ = std::move(text);
    const bool patient = waited > std::chrono::minutes(10);
    explain_again(news || !patient ? kExplainEvery
                                   : std::min<io::Duration>(2 * pause, kExplainSeldom));
  });
}

// Everybody's failures on every node, then the end.
void NodeAgent::exchange_reports(io::Duration limit) {
  rendezvous_->exchange_reports(
      {node_name_, round_.group_rank, failures_json(own_report(job_end()))},
      std::chrono::duration_cast<std::chrono::milliseconds>(limit),
      [this](std::vector<rendezvous::NodeReport> reports) {
        if (conclusion_.stage() != Conclusion::Stage::exchanging_reports) return;
        reports_ = std::move(reports);
        conclude_soon(Conclusion::Event::reports_came);
      });
}

void NodeAgent::leave_rendezvous() {
  auto how = rendezvous::Departure::failed;
  if (group_.outcome() == Outcome::succeeded || group_.outcome() == Outcome::spare)
    how = rendezvous::Departure::succeeded;
  if (group_.outcome() == Outcome::signaled || group_.outcome() == Outcome::signaled_early)
    how = rendezvous::Departure::stopped;
  rendezvous_->leave(how, [this](const Result<void>& left) {
    if (!left) log::debug("leaving the rendezvous: {}", left.error().message);
    conclude_soon(Conclusion::Event::departed);
  });
  explain_staying(kExplainStaying);
}

// Whoever has done its own part and still does not go says why.
void NodeAgent::explain_staying(io::Duration pause) {
  waiting_timer_.start(pause, [this] {
    const std::string text = printable(rendezvous_->staying_for(), kMostWords);
    if (!text.empty()) log::warning("{}", text);
    explain_staying(kExplainEvery);
  });
}

}  // namespace lockstep::agent
