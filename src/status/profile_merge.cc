// Walks through the JSON of a trace, a byte or a piece of text at a time.
#include "status/profile_merge.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>

namespace lockstep::status {
namespace {

// {"traceEvents": [{"pid": ...}]}: the depth inside of the object, the list, an event, its args.
constexpr int kTop = 1;
constexpr int kList = 2;
constexpr int kEvent = 3;
constexpr int kArgs = 4;

// Names and values that are looked at are shorter.
constexpr std::size_t kMostToken = 256;
// Linux has pids below 2^22, and Kineto uses small numbers for GPUs.
constexpr std::int64_t kPids = 10'000'000;
constexpr std::int64_t kIds = 1'000'000'000'000;

// Bytes at which a text needs a closer look: its end, escapes, and what JSON forbids.
constexpr auto kOddInText = [] {
  std::array<bool, 256> odd{};
  for (std::size_t i = 0; i < 0x20; ++i)
    odd[i] = true;
  odd['"'] = odd['\\'] = true;
  return odd;
}();

bool is_plain(char c) {
  return !kOddInText[static_cast<unsigned char>(c)];
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Removes digits from the front. Returns how many.
std::size_t drop_digits(std::string_view& text) {
  const auto* const end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(count);
  return count;
}

bool is_json_scalar(std::string_view text) {
  if (text == "true" || text == "false" || text == "null") return true;
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool zero = text.starts_with('0');
  const std::size_t digits = drop_digits(text);
  if (digits == 0 || (zero && digits > 1)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (drop_digits(text) == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (drop_digits(text) == 0) return false;
  }
  return text.empty();
}

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

std::string shifted(std::string_view number, std::int64_t place, std::int64_t room) {
  const auto value = parse_int(number);
  if (!value || *value < 0 || *value >= room) return std::string(number);
  return std::to_string(place * room + *value);
}

}  // namespace

std::string_view merged_head() {
  return "{\"traceEvents\": [\n";
}

std::string merged_tail(const std::string& base) {
  return "\n],\n" + (base.empty() ? "" : "\"baseTimeNanoseconds\": " + base + ",\n") +
         "\"displayTimeUnit\": \"ms\"}\n";
}

bool MergedTrace::feed(std::string_view bytes, std::string& out) {
  while (!bytes.empty() && !bad_) {
    if (in_ == In::text && !escaped_ && hex_left_ == 0) {
      // Most of a trace is text that passes as it is.
      const auto* const odd = std::find_if_not(bytes.begin(), bytes.end(), is_plain);
      const auto end = static_cast<std::size_t>(odd - bytes.begin());
      const std::string_view piece = bytes.substr(0, end);
      if (!token_long_ && token_.size() + piece.size() > kMostToken) {
        put(token_, out);
        token_.clear();
        token_long_ = true;
      }
      if (token_long_)
        put(piece, out);
      else
        token_ += piece;
      bytes.remove_prefix(end);
      if (bytes.empty()) break;
    }
    bad_ = !take(bytes.front(), out);
    bytes.remove_prefix(1);
  }
  return !bad_;
}

// Returns false for what JSON does not allow there: it would spoil the merged trace of all ranks.
bool MergedTrace::take(char c, std::string& out) {
  if (in_ == In::text) return take_in_text(c, out);
  if (in_ == In::scalar) {
    if (!is_blank(c) && c != ',' && c != '}' && c != ']') return take_in_scalar(c);
    if (!is_json_scalar(token_)) return false;
    token_ends(out);
  }
  if (is_blank(c)) {
    if (depth_ > kList) put({&c, 1}, out);
    return true;
  }
  if (closed_) return false;
  if (c == '{' || c == '[') return open(c, out);
  if (c == '}' || c == ']') return shut(c, out);
  if (c == ',' || c == ':') return separate(c, out);
  return begin(c);
}

bool MergedTrace::take_in_text(char c, std::string& out) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20) return false;
  const bool ends = c == '"' && !escaped_ && hex_left_ == 0;
  if (hex_left_ > 0) {
    if (std::isxdigit(byte) == 0) return false;
    --hex_left_;
  } else if (escaped_) {
    if (std::string_view("\"\\/bfnrtu").find(c) == std::string_view::npos) return false;
    escaped_ = false;
    if (c == 'u') hex_left_ = 4;
  } else {
    escaped_ = c == '\\';
  }
  if (token_long_)
    put({&c, 1}, out);
  else
    token_ += c;
  if (ends) token_ends(out);
  return true;
}

bool MergedTrace::take_in_scalar(char c) {
  token_ += c;
  return token_.size() < kMostToken;
}

// Begins a text or a scalar.
bool MergedTrace::begin(char c) {
  const bool value = next_ == Next::value || next_ == Next::first_value;
  const bool name = next_ == Next::name || next_ == Next::first_name;
  if (depth_ == 0 || !(value || (name && c == '"'))) return false;
  // The list of events has nothing but events.
  if (in_events_ && depth_ == kList) return false;
  in_ = c == '"' ? In::text : In::scalar;
  token_.assign(1, c);
  token_long_ = false;
  return true;
}

bool MergedTrace::separate(char c, std::string& out) {
  if (depth_ == 0 || next_ != (c == ',' ? Next::comma : Next::colon)) return false;
  next_ = c == ',' && object_[depth_] ? Next::name : Next::value;
  // Commas between events are written with the events.
  if (depth_ > kList) put({&c, 1}, out);
  return true;
}

bool MergedTrace::open(char c, std::string& out) {
  const bool object = c == '{';
  if (depth_ == kMostDepth || (depth_ == 0 && !object)) return false;
  if (next_ != Next::value && next_ != Next::first_value) return false;
  if (in_events_ && depth_ == kList) {
    if (!object) return false;
    if (!first_) put(",\n", out);
    first_ = false;
    event_name_.clear();
  }
  if (depth_ == kTop && !object && !in_events_ && keys_[kTop] == "traceEvents") {
    if (saw_events_) return false;
    saw_events_ = in_events_ = true;
  } else {
    put({&c, 1}, out);
  }
  object_[++depth_] = object;
  next_ = object ? Next::first_name : Next::first_value;
  if (depth_ <= kArgs) keys_[depth_].clear();
  return true;
}

bool MergedTrace::shut(char c, std::string& out) {
  if (depth_ == 0 || object_[depth_] != (c == '}')) return false;
  if (next_ != Next::comma && next_ != (c == '}' ? Next::first_name : Next::first_value))
    return false;
  if (in_events_ && depth_ == kList)
    in_events_ = false;
  else
    put({&c, 1}, out);
  closed_ = --depth_ == 0;
  next_ = Next::comma;
  return true;
}

// A whole text or scalar has been read.
void MergedTrace::token_ends(std::string& out) {
  in_ = In::structure;
  const bool name = next_ == Next::name || next_ == Next::first_name;
  next_ = name ? Next::colon : Next::comma;
  if (name) {
    if (depth_ <= kArgs)
      keys_[depth_] = !token_long_ ? token_.substr(1, token_.size() - 2) : std::string();
    if (!token_long_) put(token_, out);
    return;
  }
  if (token_long_) return;
  if (depth_ == kTop && keys_[kTop] == "baseTimeNanoseconds")
    if (const auto base = parse_int(token_)) base_ = std::to_string(*base);
  if (is_value_of(kEvent, "name")) event_name_ = token_;
  put(wants_change() ? changed() : token_, out);
}

bool MergedTrace::is_value_of(int depth, std::string_view key) const {
  return in_events_ && depth_ == depth && object_[depth] && keys_[depth] == key;
}

bool MergedTrace::wants_change() const {
  return is_value_of(kEvent, "pid") || is_value_of(kEvent, "id") ||
         (is_value_of(kArgs, "name") && keys_[kEvent] == "args" &&
          event_name_ == "\"process_name\"");
}

// Returns the value that tells this rank's processes and arrows from those of other ranks.
std::string MergedTrace::changed() const {
  const bool text = token_.front() == '"';
  const auto behind = [this](const std::string& head) { return "\"" + head + token_.substr(1); };
  if (depth_ == kArgs) return text ? behind(fmt::format("rank {}: ", rank_)) : token_;
  if (keys_[kEvent] == "pid")
    return text ? behind(fmt::format("rank {} ", rank_)) : shifted(token_, place_, kPids);
  return text ? behind(fmt::format("{}.", rank_)) : shifted(token_, place_, kIds);
}

void MergedTrace::put(std::string_view bytes, std::string& out) const {
  if (in_events_) out += bytes;
}

}  // namespace lockstep::status
