#include "rendezvous/dynamic/dynamic_driver.h"

#include "rendezvous/closed_hint.h"
#include "rendezvous/dynamic/state_codec.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::dynamic {
namespace {

// Returns whether other nodes may be waiting for this change. A further participant is not news: a
// thousand joining nodes would wake each other a million times.
bool is_news(const RendezvousState& from, const RendezvousState& to, std::size_t max_nodes) {
  const bool room = from.participants.size() >= max_nodes && to.participants.size() < max_nodes;
  return from.complete != to.complete || from.round != to.round || from.closed != to.closed || room;
}

// Returns the longest pause before a lost write is retried. If hundreds of nodes write at once,
// nearly all writes lose again. The window in which two writes collide grows with the state, and at
// most max_nodes writes can collide.
io::Duration longest_pause(int losses, std::size_t nodes, std::size_t max_nodes) {
  constexpr std::chrono::microseconds kLeast(500);
  constexpr std::chrono::microseconds kPerNode(10);
  constexpr int kMostDoublings = 10;
  const std::size_t doubled = std::size_t{1} << std::min(losses, kMostDoublings);
  return (kLeast + kPerNode * nodes) * std::min(doubled, max_nodes);
}

// A lost write is retried at once on top of the winner's state, which suffices for few nodes. A
// joining node that has lost kLossesToQueue times joins the queue. The first node in the queue
// writes for many nodes, so it retries far more often before it pauses.
constexpr int kLossesToQueue = 2;
constexpr int kLossesOfQueue = 8;

// Only these two codes mean that the store did not answer. See leave() in dynamic_backend.cc.
bool is_silence(const Result<Step>& outcome) {
  return !outcome &&
         (outcome.error().code == Errc::timeout || outcome.error().code == Errc::unavailable);
}

}  // namespace

std::string round_prefix(const std::string& run_id, std::int64_t round) {
  return fmt::format("torch.rendezvous.{}.{}/", run_id, round);
}

DynamicDriver::DynamicDriver(io::Loop& loop, StateStore& state, KeyValue& keys, std::string run_id,
                             Node self, DynamicSettings settings)
    : store_(state),
      keys_(keys),
      run_id_(std::move(run_id)),
      member_(std::move(self), settings),
      queue_(keys, fmt::format("torch.rendezvous.{}/lockstep/", run_id_)),
      poll_(loop),
      watch_(loop) {}

DynamicDriver::~DynamicDriver() = default;

Now DynamicDriver::now() {
  return {std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now()),
          std::chrono::steady_clock::now()};
}

std::string DynamicDriver::change_key(std::int64_t change) const {
  return fmt::format("torch.rendezvous.{}/lockstep/change/{}", run_id_, change);
}

void DynamicDriver::run(Op op, std::function<void(Result<Step>)> done) {
  watch_.cancel();
  operations_.push_back({op, std::move(done)});
  if (operations_.size() == 1) return start_next();
  // Wake the pending join at once.
  if (given_up() && poll_.active()) poll_.start({}, [this] { read(); });
}

void DynamicDriver::start_next() {
  if (operations_.empty()) return;
  joined_ = 0;
  losses_ = 0;
  member_.begin(operations_.front().op, now());
  read();
}

void DynamicDriver::read() {
  change_.reset();
  poll_.cancel();
  queue_.stop_waiting();
  store_.read(calls_([this](Result<StateStore::Stored> stored) {
    if (operations_.empty()) return;
    if (!stored) return end(tl::make_unexpected(std::move(stored).error()));
    decode(*stored);
  }));
}

// Returns whether the next operation makes the pending join pointless. A join may take ten minutes,
// and a node that wants to leave or to end the job must not wait that long.
bool DynamicDriver::given_up() const {
  if (operations_.size() < 2 || operations_.front().op != Op::join) return false;
  const Op next = operations_[1].op;
  return next == Op::withdraw || next == Op::close || next == Op::fail;
}

void DynamicDriver::decode(const StateStore::Stored& stored) {
  auto state = stored.text == kNoState ? Result<RendezvousState>(RendezvousState{})
                                       : decode_state(stored.text);
  if (!state)
    return end(tl::make_unexpected(
        std::move(state).error().within("the rendezvous state of run " + run_id_)));
  consider(stored, std::move(*state));
}

void DynamicDriver::consider(const StateStore::Stored& stored, RendezvousState state) {
  stored_ = stored;
  last_state_ = std::move(state);
  // Apply lost connections only now: the heartbeat in this state is the final one of a lost node.
  for (const auto& [node, heartbeat] : last_state_.last_heartbeats)
    if (!guests_lost_.empty() && guests_lost_.contains(to_text(node)))
      member_.presume_dead(node, heartbeat);
  guests_lost_.clear();
  if (given_up()) return end(fail(Errc::canceled, "this node joins no more"));
  carry_out(member_.next(last_state_, now()));
}

void DynamicDriver::carry_out(Step step) {
  switch (step.kind) {
    case Step::Kind::wait:
      joined_ = step.state.participants.size();
      return wait(step.until);
    case Step::Kind::write:
      if (step.wish && queue_.holds(last_state_.settled)) return write_all_wishes(*step.wish);
      batch_.reset();
      if (step.wish && losses_ >= kLossesToQueue) return queue_up(*step.wish);
      return write(std::move(step.state));
    default:
      return end(std::move(step));
  }
}

// Waits until a Lockstep agent announces a change. Looks again at `until` in any case, because
// torchrun's agents announce nothing.
void DynamicDriver::wait(SteadyTime until) {
  poll_.start(until - std::chrono::steady_clock::now(), [this] { read(); });
  // This node was told of a change that the state does not show. Asking again at once would only
  // spin.
  if (std::exchange(woken_at_, -1) == last_state_.changes) return;
  change_ = keys_.watch(change_key(last_state_.changes + 1), [this](const std::string&) {
    woken_at_ = last_state_.changes;
    read();
  });
}

void DynamicDriver::write(RendezvousState state) {
  const bool news = is_news(last_state_, state, member_.settings().max_nodes);
  if (news) state.changes = last_state_.changes + 1;
  auto text = encode_state(state);
  if (!text) return end(tl::make_unexpected(std::move(text).error()));
  const auto written = std::make_shared<RendezvousState>(std::move(state));
  // Announce after the write, so that a woken node finds the new state.
  store_.write(stored_, *text, calls_([this, news, written](Result<StateStore::Stored> stored) {
                 if (operations_.empty()) return;
                 if (!stored) return end(tl::make_unexpected(std::move(stored).error()));
                 if (!stored->written) return after_loss(*stored);
                 losses_ = 0;
                 if (news) keys_.set(change_key(written->changes), "1", nullptr);
                 if (batch_) answer_batch(written->changes);
                 consider(*stored, std::move(*written));
               }));
}

void DynamicDriver::after_loss(const StateStore::Stored& stored) {
  const bool joins = operations_.front().op == Op::join;
  const int at_once = batch_ ? kLossesOfQueue : joins ? kLossesToQueue : 1;
  if (++losses_ <= at_once || given_up()) return decode(stored);
  const auto longest = std::min<io::Duration>(
      longest_pause(losses_, last_state_.last_heartbeats.size(), member_.settings().max_nodes),
      member_.settings().poll_interval);
  // Spread the retries of nodes with simultaneous losses.
  std::uniform_int_distribution<io::Duration::rep> any(0, longest.count());
  poll_.start(io::Duration(any(chance_)), [this] { read(); });
}

// Files the wish in the queue. Looks at the state again after a while without an answer: the first
// node in the queue may have died.
void DynamicDriver::queue_up(const JoinWish& wish) {
  member_.filed(wish);
  const auto patience = member_.settings().poll_interval;
  // Nodes queued together time out together. Spread their retries, or the writes collide as before.
  std::uniform_int_distribution<io::Duration::rep> any(0, io::Duration(patience).count());
  poll_.start(patience + io::Duration(any(chance_)), [this] { read(); });
  queue_.file(encode_wish(wish, member_.terms()), last_state_.settled,
              [this](const JoinQueue::Answer& answer) { answered(answer); });
}

void DynamicDriver::answered(const JoinQueue::Answer& answer) {
  if (answer.kind != JoinQueue::Answer::Kind::wait) return read();
  last_state_.changes = answer.change;
  wait(std::chrono::steady_clock::now() + member_.settings().poll_interval);
}

// Reads the wishes once. If the write loses, the same wishes are applied to the newer state.
void DynamicDriver::write_all_wishes(const JoinWish& own) {
  if (batch_) return fold(own);
  queue_.collect(last_state_.settled, calls_([this, own](Result<JoinQueue::Batch> batch) {
                   if (operations_.empty()) return;
                   if (!batch) return end(tl::make_unexpected(std::move(batch).error()));
                   batch_ = std::move(*batch);
                   fold(own);
                 }));
}

void DynamicDriver::fold(const JoinWish& own) {
  // Another node may have settled wishes since the batch was read.
  const auto settled = static_cast<std::size_t>(std::clamp<std::int64_t>(
      last_state_.settled + 1 - batch_->first, 0, std::ssize(batch_->wishes)));
  batch_->first += static_cast<std::int64_t>(settled);
  batch_->wishes.erase(batch_->wishes.begin(),
                       batch_->wishes.begin() + static_cast<std::ptrdiff_t>(settled));
  std::vector<std::optional<JoinWish>> wishes;
  wishes.reserve(batch_->wishes.size());
  for (const std::string& text : batch_->wishes)
    wishes.push_back(decode_wish(text, member_.terms()));
  auto folded = member_.fold(last_state_, wishes, own, now());
  answers_.clear();
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    using Kind = JoinQueue::Answer::Kind;
    const bool placed = folded.state.complete && folded.granted[i] &&
                        folded.state.participants.contains(wishes[i]->node);
    answers_.push_back({placed ? Kind::look : folded.granted[i] ? Kind::wait : Kind::act});
  }
  folded.state.settled = std::max(last_state_.settled, batch_->end() - 1);
  write(std::move(folded.state));
}

// Answers the nodes of the written wishes. An admitted node need not read the state before the next
// news.
void DynamicDriver::answer_batch(std::int64_t changes) {
  for (JoinQueue::Answer& answer : answers_)
    answer.change = changes;
  queue_.answer(*batch_, answers_);
  batch_.reset();
}

void DynamicDriver::end(Result<Step> outcome) {
  poll_.cancel();
  batch_.reset();
  // The queue must not wait for a node that is done.
  if (!lost_ && queue_.ticket() > 0) queue_.leave(last_state_.settled);
  change_.reset();
  woken_at_ = -1;
  const Operation ended = std::move(operations_.front());
  operations_.pop_front();
  if (ended.op == Op::join) {
    in_round_ = outcome && outcome->is(Step::Kind::done);
    unheard_ = is_silence(outcome);
  }
  if (ended.op != Op::join && ended.op != Op::keep_alive) in_round_ = false;
  if (!operations_.empty()) {
    start_next();
  } else if (in_round_ && !lost_) {
    watch_.start(member_.settings().poll_interval, [this] { tick(); });
  }
  // Last statement: the callback may destroy this driver.
  ended.done(std::move(outcome));
}

void DynamicDriver::guest_lost(const std::string& node) {
  if (lost_) return;
  guests_lost_.insert(node);
  // Look at once instead of at the next poll, so that survivors restart without delay.
  if (!operations_.empty() && poll_.active()) return read();
  if (!operations_.empty() || !watch_.active()) return;
  watch_.cancel();
  tick();
}

void DynamicDriver::lost(const Error& error) {
  if (std::exchange(lost_, true)) return;
  watch_.cancel();
  // A sleeping operation does not notice the loss by itself.
  if (!operations_.empty() && poll_.active()) end(tl::make_unexpected(error));
}

// Renews the heartbeat and reports the state. Ignores failures: the place reports a lost store.
void DynamicDriver::tick() {
  run(Op::keep_alive, [this](const Result<Step>& outcome) {
    if (!outcome || !in_round_) return;
    if (const auto tell = on_watched_) tell(outcome->state);
  });
}

Error DynamicDriver::ended_badly(const Step& step, const std::string& what) const {
  if (step.is(Step::Kind::closed))
    return {Errc::canceled, fmt::format("the rendezvous '{}' is closed", run_id_),
            closed_hint(run_id_), 0};
  return {Errc::timeout,
          fmt::format("{} timed out: {} of at least {} nodes had joined the rendezvous '{}'", what,
                      joined_, member_.settings().min_nodes, run_id_),
          {},
          0};
}

void DynamicDriver::join(Done<std::optional<RoundResult>> done) {
  run(Op::join, [this, done = std::move(done)](Result<Step> outcome) {
    if (!outcome) return done(tl::make_unexpected(std::move(outcome).error()));
    if (outcome->is(Step::Kind::graceful_exit)) return done(std::nullopt);
    if (!outcome->is(Step::Kind::done))
      return done(tl::make_unexpected(ended_badly(*outcome, "joining")));
    RoundPlace place = place_of(outcome->state, self());
    RoundResult result{.round = place.round,
                       .rank = place.rank,
                       .world = place.nodes.size(),
                       .nodes = std::move(place.nodes),
                       .prefix = round_prefix(run_id_, place.round)};
    done(std::move(result));
  });
}

void DynamicDriver::run_simple(Op op, const std::string& what, Done<void> done) {
  run(op, [this, what, done = std::move(done)](Result<Step> outcome) {
    if (!outcome) return done(tl::make_unexpected(std::move(outcome).error()));
    if (!outcome->is(Step::Kind::done))
      return done(tl::make_unexpected(ended_badly(*outcome, what)));
    done({});
  });
}

void DynamicDriver::withdraw(Done<void> done) {
  run_simple(Op::withdraw, "leaving", std::move(done));
}

void DynamicDriver::close(Done<void> done) {
  run_simple(Op::close, "closing", std::move(done));
}

void DynamicDriver::fail_round(Done<void> done) {
  run_simple(Op::fail, "closing", std::move(done));
}

}  // namespace lockstep::rendezvous::dynamic
