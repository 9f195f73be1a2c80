// The operations on the shared state: read, ask the state machine, compare-and-set, again.
#include "rendezvous/c10d.h"
#include "rendezvous/state_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous {

std::string C10d::state_key() const {
  return "/torch.rendezvous." + settings_.run_id;
}

Now C10d::now() {
  return {std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now()),
          std::chrono::steady_clock::now()};
}

void C10d::run(Op op, std::function<void(Result<Step>)> done) {
  LOCKSTEP_CHECK(member_.has_value());
  watch_.cancel();
  operations_.push_back({op, std::move(done)});
  if (operations_.size() == 1) start_next();
}

void C10d::start_next() {
  if (operations_.empty()) return;
  joined_ = 0;
  member_->begin(operations_.front().op, now());
  read();
}

void C10d::read() {
  quick_->get(state_key(), [this](Result<std::string> text) {
    if (!text) return end(tl::make_unexpected(std::move(text).error()));
    consider(*text);
  });
}

void C10d::consider(const std::string& text) {
  auto state = text == kNoState ? Result<RendezvousState>(RendezvousState{}) : decode_state(text);
  if (!state)
    return end(tl::make_unexpected(
        std::move(state).error().within("the rendezvous state of run " + settings_.run_id)));
  token_ = text;
  last_state_ = *state;
  carry_out(member_->next(*state, now()));
}

void C10d::carry_out(Step step) {
  if (step.is(Step::Kind::wait)) {
    joined_ = step.state.participants.size();
    poll_.start(step.until - std::chrono::steady_clock::now(), [this] { read(); });
    return;
  }
  if (!step.is(Step::Kind::write)) return end(std::move(step));
  auto text = encode_state(step.state);
  if (!text) return end(tl::make_unexpected(std::move(text).error()));
  quick_->compare_set(state_key(), token_, *text, [this, mine = *text](Result<std::string> stored) {
    if (!stored) return end(tl::make_unexpected(std::move(stored).error()));
    // A key that is not there is answered with what was expected of it.
    if (*stored == token_ && *stored != mine)
      return end(fail(Errc::unavailable,
                      "the rendezvous state has vanished from the store at " + quick_->place()));
    consider(*stored);
  });
}

void C10d::end(Result<Step> outcome) {
  poll_.cancel();
  const Operation ended = std::move(operations_.front());
  operations_.pop_front();
  if (ended.op == Op::join) in_round_ = outcome && outcome->is(Step::Kind::done);
  if (ended.op == Op::withdraw) in_round_ = false;
  if (!operations_.empty()) {
    start_next();
  } else if (in_round_ && !lost_) {
    watch_.start(settings_.dynamic.poll_interval, [this] { tick(); });
  }
  ended.done(std::move(outcome));  // last: it may destroy us
}

// Heartbeats that fail are no reason to stop: a lost store is told of elsewhere.
void C10d::tick() {
  run(Op::keep_alive, [this](Result<Step> outcome) {
    if (!outcome || !on_watched_ || !in_round_) return;
    const RendezvousState& state = outcome->state;
    const Watched watched{.waiting = state.wait_list.size(),
                          .participants = state.participants.size(),
                          .takes_part = state.participants.contains(self()),
                          .closed = state.closed};
    const auto tell = on_watched_;
    tell(watched);
  });
}

Error C10d::ended_badly(const Step& step, const std::string& what) const {
  if (step.is(Step::Kind::closed))
    return {Errc::canceled, fmt::format("the rendezvous '{}' is closed", settings_.run_id),
            "the job with this --rdzv-id has ended: choose another one", 0};
  return {Errc::timeout,
          fmt::format("{} timed out: {} of at least {} nodes had joined the rendezvous '{}'", what,
                      joined_, settings_.dynamic.min_nodes, settings_.run_id),
          {},
          0};
}

void C10d::join(Done<std::optional<RoundResult>> done) {
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
                       .prefix = fmt::format("{}.{}/", state_key(), place.round)};
    done(std::move(result));
  });
}

void C10d::run_simple(Op op, const std::string& what, Done<void> done) {
  run(op, [this, what, done = std::move(done)](Result<Step> outcome) {
    if (!outcome) return done(tl::make_unexpected(std::move(outcome).error()));
    if (!outcome->is(Step::Kind::done))
      return done(tl::make_unexpected(ended_badly(*outcome, what)));
    done({});
  });
}

void C10d::withdraw(Done<void> done) {
  run_simple(Op::withdraw, "leaving", std::move(done));
}

void C10d::close(Done<void> done) {
  run_simple(Op::close, "closing", std::move(done));
}

}  // namespace lockstep::rendezvous
