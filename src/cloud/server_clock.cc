#include "cloud/server_clock.h"

#include "http/date.h"

#include <atomic>
#include <limits>

namespace lockstep::cloud {
namespace {

constexpr std::int64_t kLongestAnswer = 2'000;
constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

// All threads share this machine's clock, so they share the offset.
std::atomic<std::int64_t> known{kUnknown};

}  // namespace

std::optional<std::int64_t> server_ahead_ms(std::string_view date, std::int64_t asked_ms,
                                            std::int64_t answered_ms) {
  const auto theirs = http::parse_http_date(date);
  if (!theirs || answered_ms < asked_ms || answered_ms - asked_ms > kLongestAnswer)
    return std::nullopt;
  // Date is cut to whole seconds, so add half a second. The server read its clock between question
  // and answer: assume the middle.
  return *theirs * 1000 + 500 - (asked_ms + answered_ms) / 2;
}

void note_server_clock(std::string_view date, std::int64_t asked_ms, std::int64_t answered_ms) {
  if (const auto ahead = server_ahead_ms(date, asked_ms, answered_ms)) known = *ahead;
}

std::optional<std::int64_t> known_server_ahead_ms() {
  const std::int64_t ahead = known;
  return ahead == kUnknown ? std::nullopt : std::optional(ahead);
}

}  // namespace lockstep::cloud
