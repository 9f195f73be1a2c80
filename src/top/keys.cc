#include "top/keys.h"

#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace lockstep::top {
namespace {

constexpr char kEscape = '\x1b';
// No key of a keyboard sends a longer sequence.
constexpr std::size_t kMostSequence = 32;

// What follows "ESC [" or "ESC O".
constexpr std::array<std::pair<std::string_view, Key::Kind>, 12> kSequences = {{
    {"A", Key::Kind::up},
    {"B", Key::Kind::down},
    {"5~", Key::Kind::page_up},
    {"6~", Key::Kind::page_down},
    {"H", Key::Kind::home},
    {"1~", Key::Kind::home},
    {"7~", Key::Kind::home},
    {"F", Key::Kind::end},
    {"4~", Key::Kind::end},
    {"8~", Key::Kind::end},
    {"M", Key::Kind::enter},
    {"D", Key::Kind::escape},  // the left arrow goes back
}};

// Returns the length of a sequence behind "ESC [": parameters, then a final byte. 0: incomplete.
std::size_t sequence_length(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x3f)
    ++at;
  return at < text.size() ? at + 1 : 0;
}

std::optional<Key> named(std::string_view sequence) {
  for (const auto& [text, kind] : kSequences)
    if (text == sequence) return Key{kind};
  return std::nullopt;
}

// Returns the length that the lead byte of a UTF-8 character announces. An invalid lead byte counts
// alone, so that one broken byte never swallows the next key.
std::size_t announced(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte >= 0xf0 && byte <= 0xf4) return 4;
  if (byte >= 0xe0) return byte < 0xf0 ? 3 : 1;
  return byte >= 0xc2 ? 2 : 1;
}

struct Taken {
  std::size_t bytes;  // 0: incomplete
  std::optional<Key> key;
};

Taken take_escape(std::string_view text) {
  // A terminal sends a sequence in one write. An escape byte alone is the Esc key.
  if (text.size() == 1) return {1, Key{Key::Kind::escape}};
  if (text[1] != '[' && text[1] != 'O') return {1, Key{Key::Kind::escape}};
  const std::size_t size = sequence_length(text.substr(2));
  if (size == 0) return {text.size() > kMostSequence ? text.size() : 0, std::nullopt};
  return {2 + size, named(text.substr(2, size))};
}

Taken take_one(std::string_view text) {
  switch (text[0]) {
    case kEscape:
      return take_escape(text);
    case '\r':
    case '\n':
      return {1, Key{Key::Kind::enter}};
    case '\b':
    case '\x7f':
      return {1, Key{Key::Kind::backspace}};
    default:
      break;
  }
  const std::size_t shown = shown_length(text);
  if (shown > 0) return {shown, Key{Key::Kind::text, std::string(text.substr(0, shown))}};
  const bool incomplete = text.size() < announced(text[0]);
  return {incomplete ? std::size_t{0} : 1, std::nullopt};
}

}  // namespace

std::vector<Key> KeyReader::feed(std::string_view bytes) {
  held_ += bytes;
  std::string_view left = held_;
  std::vector<Key> keys;
  while (!left.empty()) {
    Taken taken = take_one(left);
    if (taken.bytes == 0) break;
    if (taken.key) keys.push_back(std::move(*taken.key));
    left.remove_prefix(taken.bytes);
  }
  held_ = std::string(left);
  return keys;
}

}  // namespace lockstep::top
