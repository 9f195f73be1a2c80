#include "rendezvous/dynamic/join_wish.h"

#include "base/text.h"
#include "base/utf8.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::dynamic {
namespace {

constexpr std::size_t kMostWishBytes = 4096;
constexpr std::int64_t kMostNumber = std::int64_t{1} << 62;

// Removes the next word from `rest` and returns it.
std::string_view word(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view found = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return found;
}

std::optional<std::int64_t> number(std::string_view& rest, std::int64_t least, std::int64_t most) {
  const auto value = parse_int(word(rest));
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

}  // namespace

// The address comes last, because it may hold spaces.
std::string encode_wish(const JoinWish& wish, std::string_view terms) {
  return fmt::format("join {} {} {} {} {} {} {}", terms, wish.round, wish.again ? 1 : 0, wish.seat,
                     wish.node.pid, wish.node.local_id, wish.node.addr);
}

std::optional<JoinWish> decode_wish(std::string_view text, std::string_view terms) {
  if (text.size() > kMostWishBytes || !is_utf8(text) || word(text) != "join" || word(text) != terms)
    return std::nullopt;
  const auto round = number(text, 0, kMostNumber);
  const auto again = number(text, 0, 1);
  const auto seat = number(text, -1, INT32_MAX);
  const auto pid = number(text, 0, INT32_MAX);
  const auto local_id = number(text, 0, INT32_MAX);
  if (!round || !again || !seat || !pid || !local_id || text.empty()) return std::nullopt;
  JoinWish wish{{std::string(text), *pid, *local_id}, *round, *again == 1, *seat};
  if (!badge_of(wish.node)) return std::nullopt;
  return wish;
}

}  // namespace lockstep::rendezvous::dynamic
