// The backend `etcd`: joins rounds through the driver, and shares the inside of a round with
// others.
#include "rendezvous/etcd/etcd_legacy.h"

#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "io/listen.h"
#include "io/resolve.h"
#include "rendezvous/host_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::etcd {
namespace {

using Status_ = LegacyState::Status;

// Returns the round for the exchange of ranks. The prefix is empty: each round has its own folder
// of keys.
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
      shared_(loop,
              {.run_id = settings_.run_id,
               .offer = settings_.offer,
               .nodes_asked = {},
               .read_timeout = settings_.read_timeout,
               .exit_barrier_timeout = settings_.exit_barrier_timeout},
              {.interrupted =
                   [this](const Interruption& what) {
                     if (const auto tell = on_interruption_) tell(what);
                   },
               .join_again = [this](KeyValueRound::Join done) { join(std::move(done)); }}),
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
  // etcd is external: the route there shows which of this node's addresses others can reach.
  node_address_ = address_beside(settings_.access.endpoints.front(), settings_.local_addr);
  const std::string host = settings_.offer.host.empty() ? node_address_ : settings_.offer.host;
  driver_ = std::make_unique<EtcdLegacyDriver>(
      *etcd_, LegacySettings{.prefix = settings_.prefix,
                             .run_id = settings_.run_id,
                             .rules = settings_.rules,
                             .self = {.host = host, .id = random_uuid4()}});
  driver_->on_watched([this](const EtcdLegacyDriver::Watched& watched) { on_watched(watched); });
  driver_->on_outage([this](const Error& error) {
    shared_.interrupt(Interruption::Kind::end, "etcd does not answer any more: " + error.message);
  });
  return {};
}

void EtcdLegacy::join(Done<std::optional<Round>> done) {
  shared_.reset();
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
  if (driver_->rank() == 0) {
    auto place = offer_place();
    if (!place) return done(tl::make_unexpected(std::move(place).error()));
    exchange.offered = std::move(*place);
  }
  shared_.agree(*keys_, std::move(exchange), done, [this](const Result<Assignment>& made) {
    // A node has vanished before the exchange of ranks. The round is worth nothing without that
    // node.
    if (!made && made.error().code == Errc::timeout)
      return shared_.come_to_nothing(made.error().message);
    if (!made) return shared_.fail_join(made.error());
    begin_round(*made);
  });
}

// Returns where the workers' store is. Beside torchrun's agents this node only picks a free port:
// with this backend their workers expect rank 0's worker to open the store.
Result<StorePlace> EtcdLegacy::offer_place() {
  if (round_->all_ours()) return offer_store_(node_address_);
  LOCKSTEP_TRY_ASSIGN(const auto free, io::open_listener("", 0, 1));
  return StorePlace{node_address_, free.port};
}

void EtcdLegacy::begin_round(const Assignment& made) {
  // Only nodes with Lockstep's attributes read failures and reports.
  std::vector<bool> ours(round_->participants, false);
  for (const auto& [rank, agent] : round_->agents)
    ours[rank] = true;
  shared_.begin(
      made, {.ours = std::move(ours), .board_prefix = "", .use_agent_store = round_->all_ours()});
}

std::string EtcdLegacy::name_of(std::size_t rank) const {
  const auto found = round_->agents.find(rank);
  return found == round_->agents.end() ? fmt::format("node {}", rank) : found->second.host;
}

void EtcdLegacy::on_watched(const EtcdLegacyDriver::Watched& watched) {
  if (!shared_.active() && shared_.phase() != Phase::agreeing) return;
  const auto& state = watched.state;
  const bool closed = state && state->status == Status_::closed;
  const bool same = state && state->version == round_->version && state->status == Status_::final;
  if (!closed && !same)
    return shared_.interrupt(Interruption::Kind::rejoin,
                             watched.gone.empty() ? "the other nodes have dissolved the round"
                                                  : gone_text(watched.gone));
  // A full round of Lockstep's agents ignores waiting nodes, which would only become spares.
  // torchrun's agents would restart for waiting nodes anyway.
  const bool useless = round_->all_ours() && round_->participants >= settings_.rules.max_nodes;
  if (same && state->waiting > 0 && !useless)
    return shared_.interrupt(Interruption::Kind::rejoin,
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
  // The other nodes are done, like this one.
  if (closed && shared_.phase() == Phase::barrier) return;
  const std::string why = gone_text(gone);
  if (closed)
    return shared_.interrupt(Interruption::Kind::end, why + ", and the rendezvous is closed");
  // A malformed lease key counts as gone, so there may be more gone ranks than nodes.
  const std::size_t left = round_->participants - std::min(gone.size(), round_->participants);
  if (left >= settings_.rules.min_nodes) return shared_.interrupt(Interruption::Kind::rejoin, why);
  if (round_->all_ours() && shared_.awaits_replacement())
    return shared_.interrupt(Interruption::Kind::rejoin,
                             shared_.await_replacement(why, settings_.rules.join_timeout));
  shared_.interrupt(Interruption::Kind::end, fmt::format("{}, and {} of at least {} nodes are left",
                                                         why, left, settings_.rules.min_nodes));
}

void EtcdLegacy::tell_failure(const std::string& line, bool final) {
  shared_.tell_failure(line, final);
}

// Drops the lease, so that the other nodes notice the departure at once.
void EtcdLegacy::tell_stop() {
  if (driver_ && shared_.stop()) driver_->drop_lease([](const Result<void>&) {});
}

void EtcdLegacy::finish(Done<void> done) {
  shared_.finish(std::move(done));
}

void EtcdLegacy::exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                  std::function<void(std::vector<NodeReport>)> done) {
  shared_.exchange_reports(own, timeout, std::move(done));
}

void EtcdLegacy::leave(Departure how, Done<void> done) {
  shared_.reset();
  if (!driver_) return turn_.start({}, [done = std::move(done)] { done({}); });
  // A stopped node leaves alone; every other end closes the rendezvous for all, as in torchrun.
  if (how == Departure::stopped) return driver_->drop_lease(std::move(done));
  driver_->close(std::move(done));
}

std::optional<io::TimePoint> EtcdLegacy::gives_up_at() const {
  if (!driver_ || shared_.active() || driver_->spare()) return {};
  return driver_->deadline();
}

std::string EtcdLegacy::waiting_for() const {
  if (!etcd_) return "etcd";
  const std::string trouble = etcd_->trouble().empty() ? "" : " (" + etcd_->trouble() + ")";
  std::string place = "etcd at " + etcd_->endpoints() + trouble;
  if (!driver_) return place;
  if (shared_.phase() == Phase::barrier)
    return fmt::format(
        "the workers of this node have ended well; other nodes ({} in all) still run",
        round_->participants);
  const auto& seen = driver_->last_seen();
  const auto& rules = settings_.rules;
  const std::string range = rules.min_nodes == rules.max_nodes
                                ? std::to_string(rules.min_nodes)
                                : fmt::format("{} to {}", rules.min_nodes, rules.max_nodes);
  if (!seen && !trouble.empty()) return place;
  if (!seen) return fmt::format("no node has joined '{}' at {}", settings_.run_id, place);
  if (driver_->spare())
    return fmt::format("this node is a spare; {} run the job", seen->participants);
  if (seen->status == Status_::final)
    return fmt::format("a round is under way with {} nodes; this node joins the next round",
                       seen->participants);
  return fmt::format("{} of {} nodes have joined '{}' at {}", seen->participants, range,
                     settings_.run_id, place);
}

}  // namespace lockstep::rendezvous::etcd
