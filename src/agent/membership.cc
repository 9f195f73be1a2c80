// Joins rounds through the rendezvous backend, and hosts the workers' store on rank 0.
#include "agent/membership.h"

#include "base/log.h"
#include "base/text.h"
#include "host/port_owner.h"
#include "io/listen.h"
#include "rendezvous/host_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::agent {

Membership::Membership(io::Loop& loop, const Node& node, Listener& listener,
                       const MakeBackend& make_backend)
    : loop_(loop),
      node_(node),
      listener_(listener),
      backend_(make_backend([this](const std::string& addr) { return offer_store(addr); })),
      notices_(loop),
      barrier_timer_(loop) {
  backend_->on_interruption([this](const rendezvous::Interruption& what) {
    listener_.on_interruption(what.kind, printable(what.why, kMostWords));
  });
  backend_->on_news([this](int from, const std::string& text) { listener_.on_news(from, text); });
}

namespace {

// Returns a place that the worker with rank 0 can open. Another program can take the port in the
// moment until then; the next attempt has another port.
Result<rendezvous::StorePlace> free_place(const std::string& addr) {
  LOCKSTEP_TRY_ASSIGN(const io::Listener probe,
                      io::open_listener(rendezvous::listening_place(addr), 0, 1));
  return rendezvous::StorePlace{addr, probe.port};
}

}  // namespace

// Opens the workers' store when this node is rank 0. Only a single node uses the fixed
// --master-port. For several nodes only the static backend has a fixed port, and the backend's own
// store listens there.
Result<rendezvous::StorePlace> Membership::offer_store(const std::string& addr) {
  if (node_.config.framework == launch::Framework::jax) return free_place(addr);
  // Keep the port over all rounds: agents of PyTorch 2.6 to 2.14 read the address in their first
  // round only. Purge the keys, since a new attempt would read dead peer addresses under the same
  // names.
  if (store_) {
    store_->purge();
    return rendezvous::StorePlace{addr, store_->port()};
  }
  const launch::LaunchConfig& config = node_.config;
  store::ServerOptions options;
  options.host = rendezvous::listening_place(addr);
  // Nodes learn the port with the round, so any free port will do.
  options.port = config.private_store || !config.alone() ? 0 : config.master_port;
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

void Membership::join() {
  awaited_ = Awaited::round;
  // Opening can take long (a store that is not up yet), so the notices begin before.
  notices_.start(*backend_);
  if (open_) return join_round();
  backend_->open([this](const Result<void>& opened) {
    open_ = opened.has_value();
    // A signal may have ended the wait while the backend opened.
    if (awaited_ != Awaited::round) return;
    open_ ? join_round() : join_failed(opened.error());
  });
}

void Membership::join_round() {
  backend_->join([this](Result<std::optional<Round>> outcome) {
    if (awaited_ == Awaited::round) joined(std::move(outcome));
  });
}

void Membership::joined(Result<std::optional<Round>> outcome) {
  if (!outcome) return join_failed(std::move(outcome).error());
  stop_waiting();
  if (!*outcome) return listener_.on_spare_over();
  // An unchanged restart count means that only nodes joined or left.
  const bool counted = (*outcome)->restarts != round_.restarts;
  round_ = std::move(**outcome);
  if (notices_.expects_an_end())
    log::warning("waited for {} s: {}", notices_.waited().count(),
                 node_.config.min_nodes == node_.config.max_nodes
                     ? fmt::format("all {} nodes are here", round_.group_world_size)
                     : fmt::format("{} nodes are here", round_.group_world_size));
  // Ranks come from peers or a shared store: check before starting workers with them.
  if (const Status sane = rendezvous::check_ranks(round_, node_.config.nproc); !sane)
    return join_failed(sane.error());
  say_joined();
  listener_.on_joined(round_, counted);
}

// Print a note once as long as it stays: most notes repeat every round.
void Membership::say_joined() {
  for (const std::string& note : round_.notes)
    if (std::find(said_.begin(), said_.end(), note) == said_.end())
      log::warning("{}", printable(note, kMostWords));
  said_ = round_.notes;
  if (round_.group_world_size == 1) return;
  log::info("round {}: node {} of {}, ranks {} to {} of {}, workers meet at {}:{}", round_.number,
            round_.group_rank, round_.group_world_size, round_.base_rank,
            round_.base_rank + node_.config.nproc - 1, round_.world_size,
            printable(round_.master_addr), round_.master_port);
}

void Membership::join_failed(Error error) {
  stop_waiting();
  listener_.on_join_failed(std::move(error));
}

void Membership::enter_barrier() {
  awaited_ = Awaited::barrier;
  notices_.start(*backend_);
  const auto limit = node_.config.exit_barrier_timeout;
  // --exit-barrier-timeout 0: no waiting, but through a timer, since no listener call may come from
  // inside this function.
  if (limit.count() == 0) return barrier_timer_.start({}, [this] { barrier_over(); });
  // A backend with torchrun's barrier has the same limit and a better message. Give the backend
  // half a second to speak first.
  barrier_timer_.start(limit + std::chrono::milliseconds(500), [this, limit] {
    log::warning("the workers of other nodes still run after {} s; this node does not wait longer",
                 limit.count());
    barrier_over();
  });
  backend_->finish([this](const Result<void>& all) {
    if (awaited_ != Awaited::barrier) return;
    if (!all) log::warning("{}", all.error().message);
    barrier_over();
  });
}

void Membership::barrier_over() {
  // Stop the timers first: the listener may start the next wait.
  stop_waiting();
  listener_.on_barrier_over();
}

void Membership::stop_waiting() {
  awaited_ = Awaited::nothing;
  notices_.cancel();
  barrier_timer_.cancel();
}

void Membership::tell_failure(const std::string& line, bool final) {
  backend_->tell_failure(line, final);
}

void Membership::tell_stop() {
  backend_->tell_stop();
}

void Membership::exchange_reports(const std::string& own, std::chrono::milliseconds limit,
                                  std::function<void(std::vector<rendezvous::NodeReport>)> done) {
  backend_->exchange_reports({node_.name, round_.group_rank, own}, limit, std::move(done));
}

void Membership::leave(rendezvous::Departure how, std::function<void()> done) {
  backend_->leave(how, [done = std::move(done)](const Result<void>& left) {
    if (!left) log::debug("leaving the rendezvous: {}", left.error().message);
    done();
  });
  // After leave() the host of a rendezvous may have to stay for other nodes, and says so.
  notices_.start_staying(*backend_);
}

void Membership::close() {
  stop_waiting();
  backend_.reset();
  store_.reset();
}

}  // namespace lockstep::agent
