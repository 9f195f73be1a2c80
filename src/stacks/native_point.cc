#include "stacks/native_point.h"

#include "base/text.h"
#include "stacks/call_names.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace lockstep::stacks {
namespace {

std::optional<Address> address_of(std::string_view text) {
  if (!text.starts_with("0x")) return {};
  Address value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 2, end, value, 16);
  if (error != std::errc() || stop != end) return {};
  return value;
}

}  // namespace

// "running"; "-1 SP PC"; or the call's number, its six arguments, SP and PC.
std::optional<ThreadPoint> parse_point(std::string_view syscall) {
  const std::string_view text = strip(syscall);
  if (text == "running") return ThreadPoint{.runs = true};
  const std::vector<std::string> words = split(text.substr(0, 1024), ' ');
  const auto call = parse_int(words.front());
  if (!call || *call < -1 || *call > 100'000) return {};
  if (words.size() != (*call == -1 ? 3 : 9)) return {};
  const auto stack = address_of(words[words.size() - 2]);
  const auto at = address_of(words.back());
  if (!stack || !at) return {};
  return ThreadPoint{.call = static_cast<int>(*call), .stack = *stack, .at = *at};
}

std::optional<ThreadState> parse_thread_state(std::string_view stat) {
  constexpr std::size_t kMostThreadName =
      32;  // the kernel allows 15 bytes, and more for its own threads
  // The name may contain blanks and parentheses.
  const std::size_t begin = stat.find('(');
  const std::size_t end = stat.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  if (end + 2 >= stat.size() || stat[end + 1] != ' ') return {};
  return ThreadState{.name = printable(stat.substr(begin + 1, end - begin - 1), kMostThreadName),
                     .state = stat[end + 2] >= 'A' && stat[end + 2] <= 'z' ? stat[end + 2] : '?'};
}

std::string call_words(const ThreadPoint& point, char state) {
  if (point.call >= 0) return call_name(point.call);
  if (state == 'T') return "stopped by a signal";
  if (state == 't') return "held by a debugger";
  return state == 'D' ? "page fault" : "";
}

bool may_hold_map(char state, const std::optional<ThreadPoint>& point) {
  // These calls take the lock for writing. A page fault takes it for reading, but a writer that
  // queues behind the fault blocks all later readers.
  constexpr std::array<int, 6> kCalls = {SYS_mmap,     SYS_munmap, SYS_mremap,
                                         SYS_mprotect, SYS_brk,    SYS_madvise};
  if (state != 'D') return false;
  if (!point || point->call < 0) return true;  // a page fault
  return std::find(kCalls.begin(), kCalls.end(), point->call) != kCalls.end();
}

// A direct call is e8 and four bytes. An indirect one is ff, a byte "mod 2 rm" (2 means call), and
// what these need: a SIB byte, one or four bytes of displacement. A prefix stands before all that.
bool ends_with_call(std::span<const std::byte, kCallBytes> code) {
  const auto byte = [&](std::size_t from_end) {
    return std::to_integer<unsigned>(code[kCallBytes - from_end]);
  };
  if (byte(5) == 0xe8) return true;
  for (const std::size_t length : {2UL, 3UL, 4UL, 6UL, 7UL}) {
    if (byte(length) != 0xff) continue;
    const unsigned form = byte(length - 1);
    if ((form >> 3U & 7U) != 2) continue;
    const unsigned mod = form >> 6U;
    const unsigned rm = form & 7U;
    if (mod == 3) {
      if (length == 2) return true;
      continue;
    }
    std::size_t needs = 2;
    if (rm == 4) {
      if (length < 3) continue;
      ++needs;
      if (mod == 0 && (byte(length - 2) & 7U) == 5) needs += 4;
    } else if (mod == 0 && rm == 5) {
      needs += 4;
    }
    if (mod == 1) needs += 1;
    if (mod == 2) needs += 4;
    if (needs == length) return true;
  }
  return false;
}

}  // namespace lockstep::stacks
