// The phases of a round; the header has the contract.
#include "rendezvous/key_value_round.h"

#include "base/log.h"
#include "rendezvous/exit_barrier.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous {

KeyValueRound::KeyValueRound(io::Loop& loop, KeyValueRoundSettings settings, Hooks hooks)
    : loop_(loop), settings_(std::move(settings)), hooks_(std::move(hooks)), turn_(loop) {}

RoleInfo KeyValueRound::own_info() const {
  RoleInfo info;
  info.role = settings_.offer.role;
  info.local_world_size = settings_.offer.local_world_size;
  // Tells the count to a rank 0 that has just joined and knows less.
  info.restarts = restarts_;
  info.nodes_asked = settings_.nodes_asked;
  info.max_restarts = settings_.offer.max_restarts;
  info.launched = settings_.offer.launched;
  info.host = settings_.offer.host;
  return info;
}

void KeyValueRound::reset() {
  phase_ = Phase::none;
  // Late answers of the exchange or the barrier must not reach the next round.
  calls_.drop();
  board_.reset();
  news_.reset();
  join_ = nullptr;
  barrier_done_ = nullptr;
  turn_.cancel();
}

void KeyValueRound::agree(KeyValue& keys, RankExchange exchange, Join join,
                          std::function<void(Result<Assignment>)> made) {
  reset();
  phase_ = Phase::agreeing;
  keys_ = &keys;
  facts_ = exchange.round;
  join_ = std::move(join);
  exchange.own = own_info();
  exchange.run_id = settings_.run_id;
  // A node may vanish between the round and the exchange, so the wait is bounded.
  exchange.timeout = settings_.read_timeout;
  exchange_ranks(keys, std::move(exchange),
                 calls_([this, made = std::move(made)](Result<Assignment> outcome) {
                   if (phase_ == Phase::agreeing) made(std::move(outcome));
                 }));
}

void KeyValueRound::begin(const Assignment& made, Begin how) {
  restarts_ = made.restarts;
  // The round's lowest limit counts, as far as the nodes have told theirs.
  max_restarts_ = std::min(made.max_restarts, settings_.offer.max_restarts);
  phase_ = Phase::running;
  // Node 0 of torchrun listens to no news.
  const bool listens = !how.ours.empty() && how.ours.front();
  if (hooks_.heard && listens && facts_.world > 1 && facts_.world <= NewsBoard::kMostNodes)
    news_ = std::make_unique<NewsBoard>(loop_, *keys_, how.board_prefix,
                                        static_cast<int>(facts_.rank), how.ours, hooks_.heard);
  board_ = std::make_unique<RoundBoard>(loop_, *keys_, std::move(how.board_prefix),
                                        static_cast<int>(facts_.rank), std::move(how.ours));
  together_ = how.together;
  board_->on_failure([this](const FailureRecord& record) { hear(record); });
  // Last statement: the agent may ask for more inside the callback.
  take_join()(Round{.number = facts_.round,
                    .restarts = restarts_,
                    .max_restarts = made.max_restarts,
                    .group_rank = static_cast<int>(facts_.rank),
                    .group_world_size = static_cast<int>(facts_.world),
                    .base_rank = static_cast<int>(made.ranks.base_rank),
                    .world_size = static_cast<int>(made.ranks.world_size),
                    .role_base_rank = static_cast<int>(made.ranks.role_base_rank),
                    .role_world_size = static_cast<int>(made.ranks.role_world_size),
                    .master_addr = made.workers.addr,
                    .master_port = made.workers.port,
                    .use_agent_store = how.use_agent_store,
                    .notes = made.notes});
}

KeyValueRound::Join KeyValueRound::take_join() {
  if (phase_ == Phase::agreeing) phase_ = Phase::none;
  return std::exchange(join_, nullptr);
}

void KeyValueRound::fail_join(Error error) {
  if (const auto join = take_join()) join(tl::make_unexpected(std::move(error)));
}

// Abandons the round, because a node went or came before the ranks were known. The job goes on.
void KeyValueRound::come_to_nothing(const std::string& why) {
  log::warning("round {} came to nothing: {}", facts_.round, why);
  hooks_.join_again(take_join());
}

void KeyValueRound::hear(const FailureRecord& record) {
  restarts_ = std::max(restarts_, record.restarts);
  if (hooks_.told) hooks_.told(record);
  // With torchrun agents in a static job a failure that is not final stays on its node.
  if (record.final || together_)
    interrupt(record.final ? Interruption::Kind::end : Interruption::Kind::rejoin,
              told_line(record, static_cast<int>(facts_.rank)));
}

void KeyValueRound::interrupt(Interruption::Kind kind, std::string why) {
  // Before the ranks are known the agent is still inside join() and has no round to interrupt.
  if (phase_ == Phase::agreeing && kind == Interruption::Kind::rejoin) return come_to_nothing(why);
  if (phase_ == Phase::agreeing) return fail_join({Errc::unavailable, std::move(why), {}, 0});
  if (stop()) hooks_.interrupted({kind, std::move(why)});
}

void KeyValueRound::interrupt_unless_told(Interruption::Kind kind, const std::string& why) {
  if (!active()) return interrupt(kind, why);
  board_->look([this, kind, why] { interrupt(kind, why); });
}

void KeyValueRound::interrupt_all(const std::string& why) {
  constexpr auto kAgain = Interruption::Kind::rejoin;
  if (!active()) return interrupt(kAgain, why);
  tell({static_cast<int>(facts_.rank), why, false, restarts_},
       calls_([this, why](const Result<std::string>& text) {
         // A store that does not answer is lost, or answers the next time.
         if (!text) return;
         const auto first = decode_failure(*text);
         if (first && first->node != static_cast<int>(facts_.rank)) return hear(*first);
         interrupt(kAgain, why);
       }));
}

bool KeyValueRound::stop() {
  const bool was = active();
  if (was) phase_ = Phase::over;
  barrier_done_ = nullptr;
  news_.reset();
  return was;
}

bool KeyValueRound::send_news(const std::string& text) {
  if (!news_ || text.size() > kMostNews) return false;
  news_->send(text);
  return true;
}

void KeyValueRound::tell_failure(const std::string& line, bool final) {
  if (!stop()) return;
  // A failure that is not final costs a restart, which all nodes must count alike.
  if (!final) ++restarts_;
  tell({static_cast<int>(facts_.rank), line, final, restarts_},
       count_([this, counted = restarts_](const Result<std::string>& text) {
         const auto first = text ? decode_failure(*text) : fail(Errc::corrupt, "");
         // The record that came first counts, on all nodes.
         if (first && together_ && restarts_ == counted)
           restarts_ = std::min(restarts_, first->restarts);
       }));
}

void KeyValueRound::tell(const FailureRecord& record, KeyValue::Done<std::string> done) {
  if (board_) board_->tell(record, std::move(done));
}

void KeyValueRound::finish(Done<void> done) {
  // Alone, without a store or without a barrier there is nothing to wait for.
  if (settings_.exit_barrier_timeout.count() == 0 || store_lost_ || facts_.world == 1)
    return turn_.start({}, [done = std::move(done)] { done({}); });
  // The earlier interruption is the answer.
  if (phase_ != Phase::running) return;
  phase_ = Phase::barrier;
  barrier_done_ = std::move(done);
  const auto stays = [this, round = calls_.witness()] {
    return !round.gone() && phase_ == Phase::barrier;
  };
  enter_exit_barrier(*keys_, facts_, settings_.exit_barrier_timeout, stays,
                     calls_([this](const Result<void>& all) {
                       if (phase_ != Phase::barrier) return;
                       // The static backend first asks the store whether a failure came before.
                       on_barrier_ ? on_barrier_(all) : end_barrier(all);
                     }));
}

void KeyValueRound::end_barrier(const Result<void>& all) {
  if (phase_ != Phase::barrier) return;
  phase_ = Phase::over;
  std::exchange(barrier_done_, nullptr)(all);
}

void KeyValueRound::exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                     std::function<void(std::vector<NodeReport>)> done) {
  if (board_ && !store_lost_) return board_->exchange_reports(own, timeout, std::move(done));
  turn_.start({}, [own, done = std::move(done)] { done({own}); });
}

bool KeyValueRound::awaits_replacement() const {
  return settings_.offer.replacement && restarts_ < max_restarts_;
}

std::string KeyValueRound::await_replacement(const std::string& why, io::Duration patience) {
  // Another record of the same round may have counted the restart already.
  if (active()) ++restarts_;
  return fmt::format("{}; restart {} of {}, and up to {} s for another node to take its place", why,
                     restarts_, max_restarts_,
                     std::chrono::ceil<std::chrono::seconds>(patience).count());
}

}  // namespace lockstep::rendezvous
