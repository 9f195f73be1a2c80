#include "rendezvous/dynamic/join_queue.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::dynamic {
namespace {

// Stands in for a withdrawn or late wish.
constexpr std::string_view kVoid = "void";
constexpr std::string_view kWait = "wait ";
constexpr std::string_view kLook = "look";
constexpr std::string_view kAct = "act";
// Per write. Each wish costs a read, and keys written by strangers must not keep a node reading
// forever.
constexpr std::int64_t kMostWishes = 4096;

std::string encode_answer(const JoinQueue::Answer& answer) {
  using Kind = JoinQueue::Answer::Kind;
  if (answer.kind == Kind::wait) return fmt::format("{}{}", kWait, answer.change);
  return std::string(answer.kind == Kind::look ? kLook : kAct);
}

// Decodes an answer. A malformed one means `act`, which is always safe.
JoinQueue::Answer decode_answer(std::string_view text) {
  using Kind = JoinQueue::Answer::Kind;
  if (text == kLook) return {Kind::look};
  if (!text.starts_with(kWait)) return {};
  const auto change = parse_int(text.substr(kWait.size()));
  return change && *change >= 0 ? JoinQueue::Answer{Kind::wait, *change} : JoinQueue::Answer{};
}

}  // namespace

JoinQueue::JoinQueue(KeyValue& keys, std::string prefix)
    : keys_(keys), prefix_(std::move(prefix)) {}

std::string JoinQueue::wish_key(std::int64_t ticket) const {
  return fmt::format("{}wish/{}", prefix_, ticket);
}

std::string JoinQueue::answer_key(std::int64_t ticket) const {
  return fmt::format("{}answer/{}", prefix_, ticket);
}

void JoinQueue::file(std::string wish, std::int64_t settled, std::function<void(Answer)> answered) {
  filing_.drop();
  ticket_ = 0;
  wish_ = std::move(wish);
  answered_ = std::move(answered);
  // If the store fails here, no answer comes. The caller has its own timeout.
  keys_.add(prefix_ + "tickets", 1, filing_([this, settled](const Result<std::int64_t>& ticket) {
              if (!ticket) return;
              ticket_ = *ticket;
              put(settled);
            }));
}

void JoinQueue::put(std::int64_t settled) {
  keys_.put_if_absent(
      wish_key(ticket_), wish_, filing_([this, settled](const Result<std::string>& there) {
        if (!there) return;
        // Too late: another node has closed the gap in this place.
        if (*there != wish_) ticket_ = 0;
        if (*there != wish_ || ticket_ <= settled + 1) return tell({});
        if (!answered_) return;
        watch_ = keys_.watch(answer_key(ticket_),
                             [this](const std::string& text) { tell(decode_answer(text)); });
      }));
}

void JoinQueue::tell(Answer answer) {
  const auto call = std::exchange(answered_, nullptr);
  stop_waiting();
  if (call) call(answer);
}

void JoinQueue::stop_waiting() {
  answered_ = nullptr;
  watch_.reset();
}

void JoinQueue::leave(std::int64_t settled) {
  stop_waiting();
  filing_.drop();
  const std::int64_t ticket = std::exchange(ticket_, 0);
  // The ticket is settled: nothing to take back.
  if (ticket <= settled) return;
  keys_.multi_set(
      {{wish_key(ticket), std::string(kVoid)}, {answer_key(ticket + 1), encode_answer({})}},
      nullptr);
}

void JoinQueue::collect(std::int64_t settled, std::function<void(Result<Batch>)> done) {
  keys_.add(prefix_ + "tickets", 0,
            calls_([this, settled, done = std::move(done)](const Result<std::int64_t>& tickets) {
              if (!tickets) return done(tl::make_unexpected(tickets.error()));
              const std::int64_t count = std::min(*tickets - settled, kMostWishes);
              if (count <= 0) return done(Batch{settled + 1, {}});
              read_wishes(settled + 1, count, done);
            }));
}

void JoinQueue::read_wishes(std::int64_t first, std::int64_t count,
                            const std::function<void(Result<Batch>)>& done) {
  const auto found = std::make_shared<std::vector<std::string>>(count);
  const auto left = std::make_shared<std::int64_t>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto read = [this, first, i, found, left,
                       done](const Result<std::optional<std::string>>& wish) {
      if (wish && *wish) found->at(static_cast<std::size_t>(i)) = **wish;
      // Decide only when all reads are back: the batch ends at the first gap, whatever order they
      // come in.
      if (--*left > 0) return;
      if (!wish) return done(tl::make_unexpected(wish.error()));
      const auto gap = std::find(found->begin(), found->end(), std::string());
      if (gap == found->begin()) return close_gap(first, done);
      done(Batch{first, {found->begin(), gap}});
    };
    keys_.probe(wish_key(first + i), calls_(read));
  }
}

// Settles the first ticket if its node has filed no wish, for instance because the node died. The
// queue does not wait for such a node, and a wish that comes later is void.
void JoinQueue::close_gap(std::int64_t ticket, const std::function<void(Result<Batch>)>& done) {
  keys_.put_if_absent(wish_key(ticket), kVoid,
                      calls_([ticket, done](const Result<std::string>& there) {
                        if (!there) return done(tl::make_unexpected(there.error()));
                        done(Batch{ticket, {*there}});
                      }));
}

void JoinQueue::answer(const Batch& batch, const std::vector<Answer>& answers) {
  KeyValue::Entries entries;
  entries.reserve(answers.size() + 1);
  for (std::size_t i = 0; i < answers.size(); ++i)
    entries.emplace_back(answer_key(batch.first + static_cast<std::int64_t>(i)),
                         encode_answer(answers[i]));
  // The batch is settled: the node behind the batch is now the first in the queue.
  entries.emplace_back(answer_key(batch.end()), encode_answer({}));
  keys_.multi_set(entries, nullptr);
}

}  // namespace lockstep::rendezvous::dynamic
