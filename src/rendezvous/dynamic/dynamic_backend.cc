#include "rendezvous/dynamic/dynamic_backend.h"

#include "base/log.h"
#include "base/text.h"
#include "rendezvous/dynamic/dynamic_words.h"
#include "rendezvous/dynamic/state_codec.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::dynamic {
namespace {

// After the store is lost, the host's failure record may still be arriving on another connection.
// Wait this long for the record.
constexpr std::chrono::milliseconds kLastWords{20};
// How long a stopped host stays for its guests. Short, because the user wants a stopped job gone
// soon.
constexpr std::chrono::seconds kGoodbye{1};
// A survivor is in no list between leaving the old round and joining the next. So a single look
// with too few nodes proves nothing.
constexpr int kLooksToBeSure = 2;

std::string nodes_asked(const DynamicSettings& settings) {
  if (settings.min_nodes == settings.max_nodes) return std::to_string(settings.min_nodes);
  return fmt::format("{}:{}", settings.min_nodes, settings.max_nodes);
}
}  // namespace

DynamicBackend::DynamicBackend(io::Loop& loop, std::unique_ptr<MeetingPlace> place,
                               DynamicBackendSettings settings, OfferStore offer_store)
    : loop_(loop),
      place_(std::move(place)),
      settings_(std::move(settings)),
      offer_store_(std::move(offer_store)),
      asked_(nodes_asked(settings_.dynamic)),
      shared_(loop,
              {.run_id = settings_.run_id,
               .offer = settings_.offer,
               .nodes_asked = asked_,
               .read_timeout = settings_.read_timeout,
               .exit_barrier_timeout = settings_.exit_barrier_timeout},
              {.interrupted =
                   [this](const Interruption& what) {
                     if (const auto tell = on_interruption_) tell(what);
                   },
               .join_again = [this](KeyValueRound::Join done) { join(std::move(done)); },
               .told =
                   [this](const FailureRecord& record) {
                     if (record.gone && !record.final) to_replace_ = record.line;
                   },
               .heard = place_->is_quick() ? [this](int from, const std::string& text) {
                 if (const auto tell = on_news_) tell(from, text);
               } : NewsBoard::Heard()}),
      turn_(loop),
      loss_(loop) {}

DynamicBackend::~DynamicBackend() {
  // The watch and the round use the driver's store, so they go first.
  turned_away_.reset();
  shared_.reset();
  driver_.reset();
}

void DynamicBackend::open(Done<void> done) {
  place_->on_lost([this](const Error& error) { on_lost(error); });
  place_->open([this, done = std::move(done)](Result<void> opened) {
    if (!opened) return done(std::move(opened));
    const Badge badge{.host = place_->hosts(), .node_rank = settings_.offer.node_rank};
    driver_ = std::make_unique<DynamicDriver>(
        loop_, place_->state(), place_->keys(), settings_.run_id,
        Node{place_->node_address(), getpid(), local_id_of(badge)}, settings_.dynamic);
    place_->announce(driver_->self());
    place_->on_guest_lost([this](const std::string& node) { driver_->guest_lost(node); });
    driver_->on_watched([this](const RendezvousState& state) { on_watched(state); });
    compare_launches(done);
  });
}

// Compares what this node launches with the round that is running, even if this node is not part of
// that round. If no round exists yet, the rank exchange compares later.
void DynamicBackend::compare_launches(const Done<void>& done) {
  place_->state().read(calls_([this, done](const Result<StateStore::Stored>& stored) {
    const auto state =
        stored && stored->text != kNoState ? decode_state(stored->text) : Result<RendezvousState>{};
    if (!state || !state->complete || state->closed) return done({});
    compare_with_round(place_->keys(), round_prefix(settings_.run_id, state->round),
                       shared_.own_info(), settings_.run_id, done);
  }));
}

void DynamicBackend::join(Done<std::optional<Round>> done) {
  turned_away_.reset();
  shared_.reset();
  if (driver_) place_->keys().forget_waits();
  // The caller expects no callback inside join().
  if (lost_) return turn_.start({}, [this, done] { done(tl::make_unexpected(*lost_)); });
  join_until_ = io::Clock::now() + settings_.dynamic.join_timeout;
  driver_->join([this, done = std::move(done)](Result<std::optional<RoundResult>> joined) {
    if (!joined) return fail_join(joined.error(), done);
    if (!*joined) return done(std::nullopt);
    agree(std::move(**joined), done);
  });
}

// Pending requests fail before this node hears of the lost store. After one turn of the loop the
// loss is known, and the error of the loss says more.
void DynamicBackend::fail_join(const Error& error, const Done<std::optional<Round>>& done) {
  turn_.start({}, [this, error, done] { done(tl::make_unexpected(lost_ ? *lost_ : error)); });
}

void DynamicBackend::agree(RoundResult round, const Done<std::optional<Round>>& done) {
  round_ = std::move(round);
  all_ours_ = std::all_of(round_.nodes.begin(), round_.nodes.end(),
                          [](const Node& node) { return badge_of(node).has_value(); });
  RankExchange exchange{.round = round_, .own = {}, .offered = {}};
  exchange.prefix_of = [id = settings_.run_id](std::int64_t number) {
    return round_prefix(id, number);
  };
  if (round_.rank == 0) {
    auto store = offer_store_(place_->node_address());
    if (!store) return done(tl::make_unexpected(std::move(store).error()));
    exchange.offered = std::move(*store);
  }
  shared_.agree(place_->keys(), std::move(exchange), done, [this](const Result<Assignment>& made) {
    // A node has vanished before the exchange of ranks was complete. The next round replaces this
    // round.
    if (!made && made.error().code == Errc::timeout && !lost_)
      return shared_.come_to_nothing(made.error().message);
    if (!made) return fail_join(made.error(), shared_.take_join());
    begin_round(*made);
  });
}

void DynamicBackend::begin_round(const Assignment& made) {
  to_replace_.clear();
  if (round_.rank == 0) turned_away_ = watch_turned_away(place_->keys(), round_.prefix);
  looks_at_too_few_ = 0;
  if (const auto text = other_nodes_text(round_, made, asked_); !text.empty())
    log::warning("{}", text);
  std::vector<bool> ours;
  ours.reserve(round_.nodes.size());
  for (const Node& node : round_.nodes)
    ours.push_back(badge_of(node).has_value());
  shared_.begin(made, {.ours = std::move(ours), .board_prefix = round_.prefix});
}

// Returns the names of the round's nodes that the state no longer lists.
std::string DynamicBackend::gone(const RendezvousState& state) const {
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < round_.nodes.size(); ++rank) {
    const Node& node = round_.nodes[rank];
    if (state.participants.contains(node) || state.wait_list.contains(node)) continue;
    names.push_back(node.addr);
    // Do not wait for the reports of missing nodes.
    if (RoundBoard* board = shared_.board()) board->miss(static_cast<int>(rank));
  }
  return names.empty() ? std::string() : names_of(names);
}

// Returns how the loss was noticed, for the interruption's text.
std::string DynamicBackend::silence_text(const RendezvousState& state) const {
  for (const Node& node : round_.nodes)
    if (!takes_part(state, node) && !driver_->closed(node))
      return fmt::format("no heartbeat for {} s", std::chrono::duration_cast<std::chrono::seconds>(
                                                      settings_.dynamic.eviction_time())
                                                      .count());
  return "connection closed";
}

void DynamicBackend::on_watched(const RendezvousState& state) {
  if (!shared_.active() && shared_.phase() != Phase::agreeing) return;
  warn_of_skew(state);
  if (state.closed) return on_closed();
  // The nodes that evicted this node may have ended the job over it.
  if (!state.participants.contains(driver_->self()))
    return shared_.interrupt_unless_told(
        Interruption::Kind::rejoin,
        "the other nodes have evicted this node: no sign of life for too long");
  if (const std::size_t waiting = driver_->waiting(state); waiting > 0)
    return shared_.interrupt_all(
        fmt::format("{} node{} to join", waiting, waiting == 1 ? " waits" : "s wait"));
  // Stop here if torchrun's agents take part: in their exit barrier they send no heartbeats, just
  // like dead ones.
  if (!all_ours_) return;
  const std::string names = gone(state);
  if (names.empty()) {
    looks_at_too_few_ = 0;
    return;
  }
  // Spares count: they take the places of lost nodes.
  const std::size_t left =
      state.participants.size() + state.wait_list.size() + state.redundancy_list.size();
  const std::string why =
      fmt::format("{} {} gone ({})", names, names.find(',') == std::string::npos ? "is" : "are",
                  silence_text(state));
  if (left >= settings_.dynamic.min_nodes) return miss(state, Interruption::Kind::rejoin, why);
  if (++looks_at_too_few_ < kLooksToBeSure) return;
  if (shared_.awaits_replacement()) {
    to_replace_ = why;
    return miss(state, Interruption::Kind::rejoin,
                shared_.await_replacement(why, settings_.dynamic.join_timeout));
  }
  miss(state, Interruption::Kind::end,
       fmt::format("{}, and {} of at least {} nodes are left", why, left,
                   settings_.dynamic.min_nodes));
}

// Tells the other nodes which node is missing, and interrupts the round. Without the record the
// others would only see that nodes wait to join again.
void DynamicBackend::miss(const RendezvousState& state, Interruption::Kind kind,
                          const std::string& why) {
  for (std::size_t rank = 0; shared_.active() && rank < round_.nodes.size(); ++rank) {
    if (takes_part(state, round_.nodes[rank])) continue;
    const bool final = kind == Interruption::Kind::end;
    shared_.tell({static_cast<int>(rank), why, final, shared_.restarts(), true});
    break;
  }
  shared_.interrupt(kind, why);
}

// Ends the barrier if the rendezvous was closed by a node that has left the exit barrier or never
// came. No next round comes and the barrier cannot fill up. The first look only takes note, because
// the barrier's good end may be on its way.
void DynamicBackend::on_closed() {
  const bool waits = shared_.phase() == Phase::barrier;
  if (!waits || !std::exchange(seen_closed_, true)) return;
  place_->keys().forget_waits();
  shared_.end_barrier(fail(
      Errc::unavailable,
      "the rendezvous is closed, so not all nodes come to the exit barrier: a node has failed or "
      "waits no longer"));
}

void DynamicBackend::warn_of_skew(const RendezvousState& state) {
  const auto now =
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  const auto skew = skew_.look(state, driver_->self(), now);
  if (!skew) return;
  log::warning("{}", skew_text(*skew, all_ours_));
}

void DynamicBackend::on_lost(const Error& error) {
  lost_ = error;
  shared_.lose_store();
  lost_->message = fmt::format("{} is lost: {}", place_->describe(), error.message);
  const auto here = calls_.witness();
  if (driver_) driver_->lost(*lost_);
  if (here.gone()) return;
  // A host that leaves in good order has told its guests, but the message may still be on its way
  // on another connection. In the barrier a lost store may also be the job's good end.
  loss_.start(kLastWords, [this] {
    if (shared_.phase() != Phase::barrier)
      shared_.interrupt(Interruption::Kind::end, lost_->message);
  });
}

void DynamicBackend::tell_failure(const std::string& line, bool final) {
  shared_.tell_failure(line, final);
}

// Leaves the round now, because this node's workers may take long to stop and other nodes must not
// wait for them.
void DynamicBackend::tell_stop() {
  if (!driver_ || lost_) return;
  if (shared_.stop()) say_goodbye(Departure::stopped);
  driver_->withdraw([this](const Result<void>&) { turn_.start({}, [this] { part(); }); });
}

// Closes a stopped guest's connections. A stopped host stays for its guests.
void DynamicBackend::part() {
  if (leaving_ || place_->hosts()) return;
  turned_away_.reset();
  shared_.reset();
  driver_.reset();
  place_->part();
}

void DynamicBackend::finish(Done<void> done) {
  seen_closed_ = false;
  shared_.finish(std::move(done));
}

void DynamicBackend::exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                      std::function<void(std::vector<NodeReport>)> done) {
  shared_.exchange_reports(own, timeout, std::move(done));
}

void DynamicBackend::leave(Departure how, Done<void> done) {
  // A node that cannot reach the store must not fail the job for the other nodes.
  if (how == Departure::failed && driver_ && driver_->unheard()) how = Departure::stopped;
  const bool runs = shared_.stop();
  const bool had_round = shared_.had_round();
  // The watch has a connection of its own, which a host would count as a guest's.
  turned_away_.reset();
  leaving_ = true;
  shared_.take_join();
  leave_deadline_ =
      io::Clock::now() + (how == Departure::stopped
                              ? std::min<io::Duration>(kGoodbye, settings_.dynamic.close_timeout)
                              : settings_.dynamic.close_timeout);
  if (!driver_ || lost_) return turn_.start({}, [done = std::move(done)] { done({}); });
  const auto left = [this, done = std::move(done)](const Result<void>& outcome) {
    shared_.reset();
    if (!outcome || !place_->hosts()) return done(outcome);
    await_guests(done);
  };
  if (how != Departure::succeeded && runs) say_goodbye(how);
  if (how == Departure::stopped) return driver_->withdraw(left);
  // Beside torchrun's agents use their rule: a failed agent closes the rendezvous for all.
  const bool of_round = how == Departure::failed && had_round && all_ours_;
  if (of_round) return driver_->fail_round(left);
  driver_->close(left);
}

// Returns whether too few nodes are left without this one.
bool DynamicBackend::too_few() const {
  const RendezvousState& state = driver_->last_state();
  const std::size_t listed =
      state.participants.size() + state.wait_list.size() + state.redundancy_list.size();
  return listed < settings_.dynamic.min_nodes + 1;
}

// The host takes the store along, and without a store the nodes cannot meet.
bool DynamicBackend::others_can_go_on() const {
  return driver_ && !place_->hosts() && (!too_few() || shared_.awaits_replacement());
}

// Announces this node's departure, which spares the other nodes waiting for missed heartbeats.
void DynamicBackend::say_goodbye(Departure how) {
  // A node that fails without having reported a failure could not start its workers. Such a failure
  // is final: another round would end the same way.
  const bool failed = how == Departure::failed;
  const bool replaced = too_few() && shared_.awaits_replacement();
  const bool final = failed || !others_can_go_on();
  shared_.tell({static_cast<int>(round_.rank),
                fmt::format("{} has left: it {}", place_->node_address(),
                            failed ? "could not start its workers" : "was told to stop"),
                final, shared_.restarts() + (replaced && !final ? 1 : 0), true});
}

// Keeps a host until its guests have left, because they may still have to read the end of the job.
// `done` comes by value: await_guests() may be called from a function that it replaces.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void DynamicBackend::await_guests(Done<void> done) {
  if (place_->guests() == 0 || io::Clock::now() >= leave_deadline_) {
    place_->on_departure(nullptr);
    turn_.cancel();
    return done({});
  }
  place_->on_departure([this, done] { await_guests(done); });
  turn_.start(leave_deadline_ - io::Clock::now(), [this, done] { await_guests(done); });
}

std::string DynamicBackend::staying_for() const {
  const std::size_t guests = place_->hosts() ? place_->guests() : 0;
  if (guests == 0) return {};
  return fmt::format(
      "this node hosts the store and stays until the other nodes have left: {} connection{} open",
      guests, guests == 1 ? " is" : "s are");
}

// Returns nullopt for a spare. The join timeout of a spare starts with the end of its spare time,
// which only the driver knows.
std::optional<io::TimePoint> DynamicBackend::gives_up_at() const {
  const bool joining = driver_ && join_until_ != io::TimePoint{} && !shared_.active();
  if (!joining || driver_->last_state().redundancy_list.contains(driver_->self())) return {};
  return join_until_;
}

std::string DynamicBackend::waiting_for() const {
  if (!driver_) return place_->describe();
  if (shared_.phase() == Phase::barrier)
    return fmt::format(
        "the workers of this node have ended well; other nodes ({} in all) still "
        "run",
        round_.world);
  return waiting_text({.state = driver_->last_state(),
                       .self = driver_->self(),
                       .min_nodes = settings_.dynamic.min_nodes,
                       .max_nodes = settings_.dynamic.max_nodes,
                       .run_id = settings_.run_id,
                       .place = place_->describe(),
                       .to_replace = to_replace_,
                       .strangers = place_->strangers()});
}

}  // namespace lockstep::rendezvous::dynamic
