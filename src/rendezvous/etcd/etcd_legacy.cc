#include "rendezvous/etcd/etcd_legacy.h"

#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "io/listen.h"
#include "io/resolve.h"
#include "rendezvous/exit_barrier.h"
#include "rendezvous/host_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::etcd {
namespace {

using Status_ = LegacyState::Status;

// The exchange's view of the round; its keys lie in a folder of their own.
RoundResult result_of(const LegacyState& state, std::size_t rank) {
  RoundResult result;
  result.round = parse_int(state.version).value_or(0);
  result.rank = rank;
  result.world = state.participants;
  return result;
}

}  // namespace

EtcdLegacy::EtcdLegacy(io::Loop& loop, EtcdLegacySettings settings, OfferStore offer_store)
    : loop_(loop),
      settings_(std::move(settings)),
      offer_store_(std::move(offer_store)),
      turn_(loop) {}

EtcdLegacy::~EtcdLegacy() = default;

void EtcdLegacy::open(Done<void> done) {
  turn_.start({}, [this, done = std::move(done)] {
    if (auto opened = open_now(); !opened) return done(std::move(opened));
    driver_->open([this, done](Result<void> opened) {
      if (opened) return done({});
      done(tl::make_unexpected(std::move(opened).error().within("etcd at " + etcd_->endpoints())));
    });
  });
}

Status EtcdLegacy::open_now() {
  LOCKSTEP_TRY_ASSIGN(etcd_, EtcdTransport::make(loop_, settings_.access));
  node_address_ = address_beside(settings_.access.endpoints.front(), settings_.local_addr);
  const std::string host = settings_.offer.host.empty() ? node_address_ : settings_.offer.host;
  driver_ = std::make_unique<EtcdLegacyDriver>(
      *etcd_, LegacySettings{.prefix = settings_.prefix,
                             .run_id = settings_.run_id,
                             .rules = settings_.rules,
                             .self = {.host = host, .id = random_uuid4()}});
  driver_->on_watched([this](const EtcdLegacyDriver::Watched& watched) { on_watched(watched); });
  driver_->on_outage([this](const Error& error) {
    interrupt(Interruption::Kind::end, "etcd does not answer any more: " + error.message);
  });
  return {};
}

void EtcdLegacy::join(Done<std::optional<Round>> done) {
  in_round_ = false;
  in_barrier_ = false;
  agreeing_ = nullptr;
  board_.reset();
  keys_.reset();
  driver_->join([this, done = std::move(done)](Result<std::optional<LegacyState>> joined) {
    if (!joined) return done(tl::make_unexpected(std::move(joined).error()));
    if (!*joined) return done(std::nullopt);
    agree(**joined, done);
  });
}

void EtcdLegacy::agree(const LegacyState& state, const Done<std::optional<Round>>& done) {
  round_ = state;
  keys_ = std::make_unique<EtcdV2Store>(*etcd_, driver_->round_folder() + "/kv/");
  RankExchange exchange{.round = result_of(state, driver_->rank()), .own = {}, .offered = {}};
  exchange.own.role = settings_.offer.role;
  exchange.own.local_world_size = settings_.offer.local_world_size;
  exchange.own.restarts = restarts_;
  exchange.own.max_restarts = settings_.offer.max_restarts;
  exchange.own.launched = settings_.offer.launched;
  exchange.own.host = settings_.offer.host;
  exchange.run_id = settings_.run_id;
  exchange.timeout = settings_.read_timeout;
  if (driver_->rank() == 0) {
    auto place = offer_place();
    if (!place) return done(tl::make_unexpected(std::move(place).error()));
    exchange.offered = std::move(*place);
  }
  agreeing_ = done;
  exchange_ranks(*keys_, exchange,
                 calls_([this, version = state.version, done](Result<Assignment> made) {
                   if (!agreeing_ || round_->version != version) return;
                   if (!made && made.error().code == Errc::timeout)
                     return void_round(made.error().message);
                   agreeing_ = nullptr;
                   if (!made) return done(tl::make_unexpected(std::move(made).error()));
                   begin_round(*made, done);
                 }));
}

// Beside torchrun's agents a free port: with this backend their workers expect rank 0 to open the
// store by itself.
Result<StorePlace> EtcdLegacy::offer_place() {
  if (round_->all_ours()) return offer_store_(node_address_);
  LOCKSTEP_TRY_ASSIGN(const auto free, io::open_listener("", 0, 1));
  return StorePlace{node_address_, free.port};
}

void EtcdLegacy::void_round(const std::string& why) {
  log::warning("round {} came to nothing: {}", round_->version, why);
  join(std::exchange(agreeing_, nullptr));
}

void EtcdLegacy::begin_round(const Assignment& made, const Done<std::optional<Round>>& done) {
  restarts_ = made.restarts;
  max_restarts_ = std::min(made.max_restarts, settings_.offer.max_restarts);
  std::vector<bool> ours(round_->participants, false);
  for (const auto& [rank, agent] : round_->agents)
    ours[rank] = true;
  board_ = std::make_unique<RoundBoard>(loop_, *keys_, "", static_cast<int>(driver_->rank()),
                                        std::move(ours));
  in_round_ = true;
  board_->on_failure([this](const FailureRecord& record) {
    restarts_ = std::max(restarts_, record.restarts);
    interrupt(record.final ? Interruption::Kind::end : Interruption::Kind::rejoin, record.line);
  });
  done(Round{.number = parse_int(round_->version).value_or(0),
             .restarts = restarts_,
             .max_restarts = made.max_restarts,
             .group_rank = static_cast<int>(driver_->rank()),
             .group_world_size = static_cast<int>(round_->participants),
             .base_rank = static_cast<int>(made.ranks.base_rank),
             .world_size = static_cast<int>(made.ranks.world_size),
             .role_base_rank = static_cast<int>(made.ranks.role_base_rank),
             .role_world_size = static_cast<int>(made.ranks.role_world_size),
             .master_addr = made.workers.addr,
             .master_port = made.workers.port,
             .use_agent_store = round_->all_ours(),
             .notes = made.notes});
}

void EtcdLegacy::interrupt(Interruption::Kind kind, std::string why) {
  if (agreeing_ && kind == Interruption::Kind::rejoin) return void_round(why);
  if (agreeing_) return std::exchange(agreeing_, nullptr)(fail(Errc::unavailable, std::move(why)));
  if (!std::exchange(in_round_, false)) return;
  if (const auto tell = on_interruption_) tell({kind, std::move(why)});
}

std::string EtcdLegacy::name_of(std::size_t rank) const {
  const auto found = round_->agents.find(rank);
  return found == round_->agents.end() ? fmt::format("node {}", rank) : found->second.host;
}

void EtcdLegacy::on_watched(const EtcdLegacyDriver::Watched& watched) {
  if (!in_round_ && !agreeing_) return;
  const auto& state = watched.state;
  const bool closed = state && state->status == Status_::closed;
  const bool same = state && state->version == round_->version && state->status == Status_::final;
  if (!closed && !same)
    return interrupt(Interruption::Kind::rejoin, watched.gone.empty()
                                                     ? "the other nodes have dissolved the round"
                                                     : gone_text(watched.gone));
  // A full round of ours has no use for them; torchrun's agents start again all the same.
  const bool useless = round_->all_ours() && round_->participants >= settings_.rules.max_nodes;
  if (same && state->waiting > 0 && !useless)
    return interrupt(Interruption::Kind::rejoin,
                     fmt::format("{} node{} to join", state->waiting,
                                 state->waiting == 1 ? " waits" : "s wait"));
  if (!watched.gone.empty()) on_gone(watched.gone, closed);
}

std::string EtcdLegacy::gone_text(const std::vector<std::size_t>& gone) const {
  std::string names;
  for (const std::size_t rank : gone) {
    if (!names.empty()) names += ", ";
    names += name_of(rank);
  }
  return fmt::format("{} {} gone (no lease any more)", names, gone.size() == 1 ? "is" : "are");
}

void EtcdLegacy::on_gone(const std::vector<std::size_t>& gone, bool closed) {
  if (closed && in_barrier_) return;  // they were done, as we are
  const std::string why = gone_text(gone);
  if (closed) return interrupt(Interruption::Kind::end, why + ", and the rendezvous is closed");
  const std::size_t left = round_->participants - std::min(gone.size(), round_->participants);
  if (left >= settings_.rules.min_nodes) return interrupt(Interruption::Kind::rejoin, why);
  if (round_->all_ours() && settings_.offer.replacement && restarts_ < max_restarts_) {
    if (in_round_) ++restarts_;
    return interrupt(
        Interruption::Kind::rejoin,
        fmt::format("{}; restart {} of {}, and up to {} s for another node to take its place", why,
                    restarts_, max_restarts_,
                    std::chrono::ceil<std::chrono::seconds>(settings_.rules.join_timeout).count()));
  }
  interrupt(Interruption::Kind::end, fmt::format("{}, and {} of at least {} nodes are left", why,
                                                 left, settings_.rules.min_nodes));
}

void EtcdLegacy::tell_failure(const std::string& line, bool final) {
  if (!in_round_ || !board_) return;
  in_round_ = false;
  board_->tell({static_cast<int>(driver_->rank()), line, final, restarts_ + (final ? 0 : 1)});
  if (!final) ++restarts_;
}

// The others see the lease gone.
void EtcdLegacy::tell_stop() {
  if (driver_ && std::exchange(in_round_, false)) driver_->drop_lease([](const Result<void>&) {});
}

void EtcdLegacy::finish(Done<void> done) {
  if (settings_.exit_barrier_timeout.count() == 0 || !keys_ || round_->participants == 1)
    return turn_.start({}, [done = std::move(done)] { done({}); });
  in_barrier_ = true;
  enter_exit_barrier(
      *keys_, result_of(*round_, driver_->rank()), settings_.exit_barrier_timeout,
      calls_([this, version = round_->version, done = std::move(done)](const Result<void>& all) {
        // An interruption may have come first, and a new round with it.
        if (!in_barrier_ || round_->version != version) return;
        in_round_ = false;
        done(all);
      }));
}

void EtcdLegacy::exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                  std::function<void(std::vector<NodeReport>)> done) {
  if (board_) return board_->exchange_reports(own, timeout, std::move(done));
  turn_.start({}, [own, done = std::move(done)] { done({own}); });
}

void EtcdLegacy::leave(Departure how, Done<void> done) {
  in_round_ = false;
  board_.reset();
  if (!driver_) return turn_.start({}, [done = std::move(done)] { done({}); });
  if (how == Departure::stopped) return driver_->drop_lease(std::move(done));
  driver_->close(std::move(done));
}

std::optional<io::TimePoint> EtcdLegacy::gives_up_at() const {
  if (!driver_ || in_round_ || in_barrier_ || driver_->spare()) return {};
  return driver_->deadline();
}

std::string EtcdLegacy::waiting_for() const {
  if (!etcd_) return "etcd";
  const std::string trouble = etcd_->trouble().empty() ? "" : " (" + etcd_->trouble() + ")";
  std::string place = "etcd at " + etcd_->endpoints() + trouble;
  if (!driver_) return place;
  if (in_barrier_)
    return fmt::format(
        "the workers of this node have ended well, those of other nodes ({} in all) still run",
        round_->participants);
  const auto& seen = driver_->last_seen();
  const auto& rules = settings_.rules;
  const std::string range = rules.min_nodes == rules.max_nodes
                                ? std::to_string(rules.min_nodes)
                                : fmt::format("{} to {}", rules.min_nodes, rules.max_nodes);
  if (!seen && !trouble.empty()) return place;
  if (!seen) return fmt::format("nobody has joined '{}' at {}", settings_.run_id, place);
  if (driver_->spare())
    return fmt::format("this node is a spare; {} run the job", seen->participants);
  if (seen->status == Status_::final)
    return fmt::format("a round is under way with {} nodes; this one joins the next",
                       seen->participants);
  return fmt::format("{} of {} nodes have joined '{}' at {}", seen->participants, range,
                     settings_.run_id, place);
}

}  // namespace lockstep::rendezvous::etcd
