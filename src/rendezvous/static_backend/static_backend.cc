#include "rendezvous/static_backend/static_backend.h"

#include "base/log.h"
#include "base/text.h"
#include "host/port_owner.h"
#include "rendezvous/exit_barrier.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::rendezvous::static_backend {
namespace {

// Every client that knows its world adds itself here, PyTorch's workers included. No "/" before it.
constexpr std::string_view kInit = "init/";
constexpr std::chrono::milliseconds kCountPause{1};
constexpr std::chrono::milliseconds kLastWords{20};
// For those who have to hear that it is over.
constexpr std::chrono::seconds kGoodbye{1};
constexpr std::size_t kMostWords = 512;
constexpr std::chrono::seconds kLookUp{30};

std::chrono::seconds patience(const StaticSettings& settings) {
  return std::chrono::duration_cast<std::chrono::seconds>(settings.heartbeat_interval *
                                                          settings.heartbeat_attempts);
}

// Of node rank 0, before anybody can have come: its --nnodes.
std::string nodes_key(const std::string& run_id) {
  return run_id + "/lockstep.0/lockstep/nodes";
}
// Of a node that goes again because its own is another.
std::string other_nodes_key(const std::string& run_id) {
  return run_id + "/lockstep.0/lockstep/other_nodes";
}

}  // namespace

StaticBackend::StaticBackend(io::Loop& loop, StaticSettings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      pulses_(settings_.heartbeat_attempts),
      turn_(loop),
      heart_(loop),
      loss_(loop) {}

StaticBackend::~StaticBackend() = default;

Status StaticBackend::host() {
  auto server = store::Server::listen(
      loop_, {.host = listening_place(settings_.master.addr), .port = settings_.master.port});
  if (server) {
    server_ = std::move(*server);
    settings_.master.port = server_->port();
    server_->set("/" + nodes_key(settings_.run_id), std::to_string(settings_.nodes));
    check_master();
    return {};
  }
  Error error = std::move(server).error();
  host::name_port_holder(error, settings_.master.port);
  if (error.code == Errc::already_exists) error.hint = "choose another --master-port for this job";
  return Failure(std::move(error));
}

// Who forgets --node-rank has rank 0. Only a warning: behind a translated address it is right.
void StaticBackend::check_master() {
  finder_ = std::make_unique<HostFinder>(
      loop_, codec::RdzvEndpoint{settings_.master.addr, settings_.master.port}, std::nullopt,
      kLookUp, [this](const Result<FoundHost>& found) {
        finder_.reset();
        if (!found || found->choice.host || !found->endpoint_address) return;
        misplaced_ =
            fmt::format("--node-rank is 0{}, but {}: give --node-rank on the other nodes",
                        settings_.offer.node_rank ? "" : " (not given)", found->choice.reason);
        log::warning("{}", misplaced_);
      });
}

void StaticBackend::open(Done<void> done) {
  deadline_ = io::Clock::now() + settings_.timeout;
  if (hosts()) {
    if (const Status hosting = host(); !hosting)
      return turn_.start({}, [hosting, done = std::move(done)] { done(hosting); });
  }
  open_done_ = std::move(done);
  const std::string at =
      hosts() && server_->options().host.empty() ? "127.0.0.1" : settings_.master.addr;
  keys_ = std::make_unique<TcpKeyValue>(
      loop_, store::AsyncClientOptions{.host = at,
                                       .port = settings_.master.port,
                                       .connect_timeout = settings_.timeout,
                                       .timeout = settings_.timeout});
  keys_->on_lost([this](const Error& error) { lose(error, false); });
  keys_->connect([this](Result<void> outcome) { connected(std::move(outcome)); });
}

void StaticBackend::connected(Result<void> outcome) {
  if (!outcome) {
    Error error = std::move(outcome).error();
    error.message =
        fmt::format("the connection to the store of node rank 0 at {}:{} has failed: {}",
                    settings_.master.addr, settings_.master.port, error.message);
    return std::exchange(open_done_, nullptr)(tl::make_unexpected(std::move(error)));
  }
  if (hosts()) {
    [[maybe_unused]] const auto count = server_->engine().add(kInit, 1);
    server_->flush();
    return count_nodes();
  }
  keys_->probe(nodes_key(settings_.run_id), [this](Result<std::optional<std::string>> nodes) {
    if (!nodes)
      return std::exchange(open_done_, nullptr)(tl::make_unexpected(std::move(nodes).error()));
    if (*nodes && **nodes != std::to_string(settings_.nodes)) return refuse(**nodes);
    arrive();
  });
}

void StaticBackend::arrive() {
  keys_->add_bare(kInit, 1);
  opened_ = true;
  std::exchange(open_done_, nullptr)({});
}

// torchrun would begin with as many as come, or wait for those that never do.
void StaticBackend::refuse(const std::string& nodes) {
  const std::string who = fmt::format("node rank {} ({}) was started with --nnodes {}",
                                      settings_.node_rank, settings_.offer.host, settings_.nodes);
  Error error{Errc::invalid_input,
              fmt::format("{}, node rank 0 at {}:{} with --nnodes {}", who, settings_.master.addr,
                          settings_.master.port, printable(nodes, kMostWords)),
              "give the same --nnodes on all nodes", 0};
  keys_->set(other_nodes_key(settings_.run_id), who,
             [this, error = std::move(error)](const Result<void>&) {
               std::exchange(open_done_, nullptr)(tl::make_unexpected(error));
             });
}

std::string StaticBackend::turned_away() const {
  const auto who = server_->engine().get("/" + other_nodes_key(settings_.run_id));
  if (!who) return {};
  return fmt::format("{}, this node with --nnodes {}: it was turned away",
                     printable(*who, kMostWords), settings_.nodes);
}

std::int64_t StaticBackend::joined() const {
  const auto text = server_->engine().get(kInit);
  return text ? parse_int(*text).value_or(0) : 0;
}

void StaticBackend::count_nodes() {
  const std::int64_t count = joined();
  if (!told_turned_away_ && !turned_away().empty()) {
    told_turned_away_ = true;
    log::warning("{}", turned_away());
  }
  if (count >= settings_.nodes) {
    opened_ = true;
    return std::exchange(open_done_, nullptr)({});
  }
  if (io::Clock::now() >= deadline_)
    return give_up_opening(
        {Errc::timeout,
         fmt::format("timed out after {} seconds waiting for clients. {}/{} clients joined",
                     std::chrono::ceil<std::chrono::seconds>(settings_.timeout).count(), count,
                     settings_.nodes),
         fmt::format("every node needs --nnodes {}, its own --node-rank and --master-addr {} "
                     "--master-port {}",
                     settings_.nodes, settings_.master.addr, settings_.master.port),
         0});
  turn_.start(kCountPause, [this] { count_nodes(); });
}

void StaticBackend::give_up_opening(Error error) {
  tell_over(error.message);
  deadline_ = io::Clock::now() + kGoodbye;
  await_guests([this, error = std::move(error)](const Result<void>&) {
    std::exchange(open_done_, nullptr)(tl::make_unexpected(error));
  });
}

// torchrun's agents use one prefix for good. Among ours every round has its own.
std::string StaticBackend::prefix(std::int64_t round) const {
  if (round == 0 || !all_ours_) return settings_.run_id + "/";
  return fmt::format("{}/lockstep.{}/", settings_.run_id, round);
}

void StaticBackend::join(Done<std::optional<Round>> done) {
  in_round_ = false;
  in_barrier_ = false;
  all_came_ = false;
  barrier_done_ = nullptr;
  board_.reset();
  keys_->forget_waits();
  if (lost_) return turn_.start({}, [this, done] { done(tl::make_unexpected(*lost_)); });
  RankExchange exchange{.round = {.round = rounds_,
                                  .rank = static_cast<std::size_t>(settings_.node_rank),
                                  .world = static_cast<std::size_t>(settings_.nodes),
                                  .nodes = {},
                                  .prefix = prefix(rounds_)},
                        .run_id = settings_.run_id,
                        .own = {.role = settings_.offer.role,
                                .rank = 0,
                                .local_world_size = settings_.offer.local_world_size,
                                .restarts = restarts_,
                                .nodes_asked = {},
                                .max_restarts = settings_.offer.max_restarts,
                                .launched = settings_.offer.launched,
                                .host = settings_.offer.host},
                        .offered = {},
                        .known_store = settings_.master,
                        .timeout = settings_.timeout};
  if (hosts() && rounds_ > 0 && all_ours_)
    exchange.all_are_there = [this] {
      // No worker lives: what those of the round before have left must not meet the next ones.
      const std::array<std::string, 2> kept = {"/" + settings_.run_id + "/", std::string(kInit)};
      server_->purge_except(kept);
    };
  const std::weak_ptr<const bool> life = life_;
  join_done_ = std::move(done);
  if (!hosts()) await_over();
  exchange_ranks(*keys_, std::move(exchange), [this, life](Result<Assignment> made) {
    if (life.expired() || !join_done_) return;
    if (made) return begin_round(*made);
    if (hosts()) return end_join(tl::make_unexpected(std::move(made).error()));
    // Why the host has gone may still be on its way, on another connection.
    loss_.start(kLastWords, [this, error = std::move(made).error()] {
      end_join(tl::make_unexpected(lost_ ? *lost_ : error));
    });
  });
}

void StaticBackend::end_join(Result<std::optional<Round>> outcome) {
  if (!join_done_) return;
  over_.reset();
  if (hosts() && !outcome) tell_over(outcome.error().message);
  std::exchange(join_done_, nullptr)(std::move(outcome));
}

// Where node rank 0 says that the round will not come. There is no board before there is a round.
std::string StaticBackend::over_key() const {
  return fmt::format("{}/lockstep.{}/lockstep/over", settings_.run_id, rounds_);
}

void StaticBackend::await_over() {
  over_ = keys_->watch(over_key(), [this](const std::string& why) {
    end_join(fail(Errc::unavailable, printable(why, kMostWords)));
  });
}

void StaticBackend::tell_over(const std::string& why) {
  if (!server_ || std::exchange(told_over_, true)) return;
  server_->set("/" + over_key(),
               fmt::format("node 0 ({}) has given up: {}", settings_.offer.host, why));
}

void StaticBackend::begin_round(const Assignment& made) {
  restarts_ = made.restarts;
  all_ours_ = std::find(made.ours.begin(), made.ours.end(), false) == made.ours.end();
  board_ = std::make_unique<RoundBoard>(loop_, *keys_,
                                        fmt::format("{}/lockstep.{}/", settings_.run_id, rounds_),
                                        settings_.node_rank, made.ours);
  in_round_ = true;
  board_->on_failure([this](const FailureRecord& record) { on_failure(record); });
  if (all_ours_) {
    pulses_.begin(made.ours.size());
    if (!heart_.active()) beat();
  }
  end_join(Round{.number = rounds_++,
                 .restarts = restarts_,
                 .max_restarts = made.max_restarts,
                 .group_rank = settings_.node_rank,
                 .group_world_size = settings_.nodes,
                 .base_rank = static_cast<int>(made.ranks.base_rank),
                 .world_size = static_cast<int>(made.ranks.world_size),
                 .role_base_rank = static_cast<int>(made.ranks.role_base_rank),
                 .role_world_size = static_cast<int>(made.ranks.role_world_size),
                 .master_addr = settings_.master.addr,
                 .master_port = settings_.master.port,
                 .use_agent_store = true,
                 .notes = made.notes});
}

void StaticBackend::on_failure(const FailureRecord& record) {
  restarts_ = std::max(restarts_, record.restarts);
  if (record.gone) pulses_.gone(record.node);
  // One that is not final, of a node beside torchrun's agents: nobody restarts together here.
  if (record.final || all_ours_)
    interrupt(record.final ? Interruption::Kind::end : Interruption::Kind::rejoin,
              told_line(record, settings_.node_rank));
}

std::string StaticBackend::alive_key(int node_rank) const {
  return fmt::format("{}/lockstep/alive/{}", settings_.run_id, node_rank);
}

// Counted in beats and looks, not in time: a node that was frozen itself has missed one.
void StaticBackend::beat() {
  if (unanswered_ >= settings_.heartbeat_attempts)
    return lose({Errc::unavailable,
                 fmt::format("no heartbeat for {} s", patience(settings_).count()),
                 {},
                 0},
                true);
  heart_.start(settings_.heartbeat_interval, [this] { beat(); });
  ++unanswered_;
  keys_->add(alive_key(settings_.node_rank), 1, [this](const Result<std::int64_t>& count) {
    if (count) unanswered_ = 0;
  });
  if (hosts() && (in_round_ || join_done_)) look_for_silence();
}

void StaticBackend::look() {
  for (std::size_t rank = 1; rank < pulses_.size(); ++rank)
    pulses_.look(rank, server_->engine().get("/" + alive_key(static_cast<int>(rank))));
}

void StaticBackend::look_for_silence() {
  look();
  for (std::size_t rank = 1; rank < pulses_.size(); ++rank) {
    if (join_done_ && pulses_.left(rank))
      return miss(static_cast<int>(rank), fmt::format("node {} has left", rank));
    if (pulses_.silent(rank))
      return miss(static_cast<int>(rank), fmt::format("node {} is gone (no heartbeat for {} s)",
                                                      rank, patience(settings_).count()));
  }
}

// No other node takes its rank: without it there is no round any more.
void StaticBackend::miss(int node_rank, const std::string& why) {
  if (join_done_) return end_join(fail(Errc::unavailable, why));
  board_->tell({node_rank, why, true, restarts_, true});
  interrupt(Interruption::Kind::end, why);
}

void StaticBackend::interrupt(Interruption::Kind kind, std::string why) {
  if (!std::exchange(in_round_, false)) return;
  if (const auto tell = on_interruption_) tell({kind, std::move(why)});
}

// silent: nobody has closed the connection.
void StaticBackend::lose(Error error, bool silent) {
  if (lost_) return;
  error.message = fmt::format("the store of node rank 0 at {}:{} is lost: {}",
                              settings_.master.addr, settings_.master.port, error.message);
  lost_ = std::move(error);
  heart_.cancel();
  // As in the dynamic backend: the last words of a host that was told to stop come first. All that
  // came while this process was frozen is read in the turn that found the loss, so before this.
  loss_.start(kLastWords, [this, silent] { decide_after_loss(silent); });
}

void StaticBackend::decide_after_loss(bool silent) {
  if (join_done_) return end_join(tl::make_unexpected(*lost_));
  if (all_came_) return end_barrier({});
  if (board_ && board_->alarmed())
    return interrupt(Interruption::Kind::end,
                     lost_->message + "; before that another node told of a failure");
  // In the barrier a closed connection may be the job's good end.
  if (in_barrier_ && !silent) return end_barrier(tl::make_unexpected(*lost_));
  // A host that was only frozen reads it when it wakes, so it does not end well either.
  if (silent && in_round_)
    board_->tell({settings_.node_rank,
                  fmt::format("node {} ({}) has given up: {}", settings_.node_rank,
                              settings_.offer.host, lost_->message),
                  true, restarts_, true});
  interrupt(Interruption::Kind::end, lost_->message);
}

void StaticBackend::tell_failure(const std::string& line, bool final) {
  if (!in_round_ || !board_) return;
  in_round_ = false;
  board_->tell({settings_.node_rank, line, final, restarts_ + (final ? 0 : 1)});
  if (!final) ++restarts_;
}

std::string StaticBackend::departure_text(bool stopped) const {
  return fmt::format("node {} ({}) has left: it {}", settings_.node_rank, settings_.offer.host,
                     stopped ? "was told to stop" : "could not start its workers");
}

void StaticBackend::tell_stop() {
  if (!all_ours_ || lost_) return;
  if (std::exchange(in_round_, false))
    return board_->tell({settings_.node_rank, departure_text(true), true, restarts_, true});
  // Between two rounds: the next one can't come.
  if (hosts()) return tell_over("it was told to stop");
  heart_.cancel();
  keys_->set(alive_key(settings_.node_rank), kLeft, nullptr);
}

void StaticBackend::finish(Done<void> done) {
  if (settings_.exit_barrier_timeout.count() == 0)
    return turn_.start({}, [done = std::move(done)] { done({}); });
  if (lost_) return;  // decide_after_loss() interrupts the round
  in_barrier_ = true;
  barrier_done_ = std::move(done);
  const RoundResult round{.round = rounds_ - 1,
                          .rank = static_cast<std::size_t>(settings_.node_rank),
                          .world = static_cast<std::size_t>(settings_.nodes),
                          .nodes = {},
                          .prefix = prefix(rounds_ - 1)};
  const std::weak_ptr<const bool> life = life_;
  enter_exit_barrier(*keys_, round, settings_.exit_barrier_timeout,
                     [this, life, number = rounds_](const Result<void>& all) {
                       if (life.expired() || !in_barrier_ || rounds_ != number) return;
                       if (all && all_ours_) return all_came();
                       // Where the store is lost, decide_after_loss() knows whether that is a good
                       // end.
                       if (all || all.error().code == Errc::timeout) end_barrier(all);
                     });
}

// The other nodes may have given this one up while it did not run, or it them. Whether the job has
// ended well is decided in the store, once for all nodes.
void StaticBackend::all_came() {
  all_came_ = true;
  board_->conclude([this](const std::optional<FailureRecord>& failure) {
    if (failure) return on_failure(*failure);
    end_barrier({});
  });
}

void StaticBackend::end_barrier(Result<void> all) {
  if (!std::exchange(in_round_, false)) return;  // interrupted before
  if (const auto done = std::exchange(barrier_done_, nullptr)) done(std::move(all));
}

void StaticBackend::exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                     std::function<void(std::vector<NodeReport>)> done) {
  if (board_ && !lost_) return board_->exchange_reports(own, timeout, std::move(done));
  turn_.start({}, [own, done = std::move(done)] { done({own}); });
}

void StaticBackend::leave(Departure how, Done<void> done) {
  const bool stopped = how == Departure::stopped;
  const bool runs = std::exchange(in_round_, false);
  if (hosts() && join_done_) tell_over(stopped ? "it was told to stop" : "it has failed");
  in_barrier_ = false;
  join_done_ = nullptr;
  over_.reset();
  heart_.cancel();
  const bool brief = stopped || told_over_;
  deadline_ = io::Clock::now() + (brief ? std::min<io::Duration>(kGoodbye, settings_.close_timeout)
                                        : settings_.close_timeout);
  leave_done_ = std::move(done);
  if (!all_ours_ || lost_) return go_or_await_guests();
  // Should nobody answer any more.
  turn_.start(kGoodbye, [this] { go_or_await_guests(); });
  // Who fails in a round of which it told nothing could not begin it.
  if (how != Departure::succeeded && runs)
    return board_->tell({settings_.node_rank, departure_text(stopped), true, restarts_, true},
                        [this](const Result<std::string>&) { go_or_await_guests(); });
  if (!hosts())
    return keys_->set(alive_key(settings_.node_rank), kLeft,
                      [this](const Result<void>&) { go_or_await_guests(); });
  // The store goes with its host, and answers in order: all that was told before is there then.
  keys_->add(alive_key(settings_.node_rank), 0,
             [this](const Result<std::int64_t>&) { go_or_await_guests(); });
}

void StaticBackend::go_or_await_guests() {
  const auto done = std::exchange(leave_done_, nullptr);
  if (!done) return;
  board_.reset();
  if (hosts() && server_) return await_guests(done);
  turn_.start({}, [done] { done({}); });
}

// By value: it may be called from what it replaces.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void StaticBackend::await_guests(Done<void> done) {
  constexpr std::size_t kOwn = 2;
  const auto now = io::Clock::now();
  const bool all_gone = all_ours_ && pulses_.all_gone();
  if (server_->stats().connections <= kOwn || all_gone || now >= deadline_) {
    server_->on_departure(nullptr);
    turn_.cancel();
    return done({});
  }
  server_->await_departures();
  server_->on_departure([this, done] { await_guests(done); });
  turn_.start(std::min<io::Duration>(deadline_ - now, settings_.heartbeat_interval), [this, done] {
    look();
    await_guests(done);
  });
}

std::string StaticBackend::waiting_for() const {
  const std::string at = fmt::format("{}:{}", settings_.master.addr, settings_.master.port);
  if (in_barrier_)
    return "the workers of this node have ended well, those of other nodes still run";
  if (hosts()) return waiting_for_guests(at);
  if (!opened_)
    return fmt::format("node rank 0 at {} (last attempt: {})", at, keys_->attempt_text());
  return fmt::format("the other nodes at {}", at);
}

std::string StaticBackend::waiting_for_guests(const std::string& at) const {
  std::string text = "the other nodes to join again";
  if (!opened_)
    text = fmt::format(
        "{} of {} nodes have come to {}", joined(), settings_.nodes,
        misplaced_.empty() ? at : fmt::format("port {} of this machine", settings_.master.port));
  if (!misplaced_.empty()) text += "; " + misplaced_;
  if (server_ && !turned_away().empty()) text += "; " + turned_away();
  return text;
}

}  // namespace lockstep::rendezvous::static_backend
