// Parses responses. Strict about lengths: a wrong length would make the rest look like the next
// answer.
#include "http/response_parse.h"

#include "base/text.h"
#include "http/token.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep::http {
namespace {

constexpr std::size_t kMaxDigits = 15;  // of a length; as many hex digits fit into 64 bits

std::optional<std::uint64_t> parse_length(std::string_view text, unsigned base) {
  if (text.empty() || text.size() > kMaxDigits) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    const int digit = hex_digit(c);
    if (digit < 0 || static_cast<unsigned>(digit) >= base) return std::nullopt;
    value = value * base + static_cast<unsigned>(digit);
  }
  return value;
}

std::string in_quotes(std::string_view text) {
  return "'" + printable(text, 60) + "'";
}

}  // namespace

std::string_view ResponseHead::field(std::string_view name) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
  return found == fields.end() ? std::string_view{} : std::string_view(found->value);
}

std::size_t ResponseParser::feed(std::string_view bytes, std::string& body) {
  const std::size_t all = bytes.size();
  while (!bytes.empty() && (state_ == State::head || state_ == State::body)) {
    // Without a length the body ends with the connection.
    if (part_ == Part::rest) {
      body += bytes;
      return all;
    }
    if (part_ == Part::length || part_ == Part::chunk) {
      const std::size_t size = std::min<std::uint64_t>(left_, bytes.size());
      body += bytes.substr(0, size);
      bytes.remove_prefix(size);
      left_ -= size;
      if (left_ > 0) break;
      if (part_ == Part::length) state_ = State::complete;
      if (part_ == Part::chunk) part_ = Part::chunk_end;
      continue;
    }
    const std::size_t newline = bytes.find('\n');
    const std::size_t size = std::min(newline, bytes.size() - 1) + 1;
    // Bound a line while it grows: a server may never send its end.
    const std::size_t room = kLineLimit - line_.size();
    if (size > room) {
      fail_with("a line is longer than 16 KiB");
      break;
    }
    line_ += bytes.substr(0, size);
    bytes.remove_prefix(size);
    // Sizes of chunks are no part of the head.
    if (part_ != Part::chunk_size && part_ != Part::chunk_end) head_bytes_ += size;
    if (head_bytes_ > kHeadLimit) {
      fail_with("the head is larger than 32 KiB");
      break;
    }
    if (newline == std::string_view::npos) break;
    const std::string line = std::exchange(line_, {});
    std::string_view text = std::string_view(line).substr(0, line.size() - 1);
    if (text.ends_with('\r')) text.remove_suffix(1);
    take_line(text);
  }
  return all - bytes.size();
}

ResponseParser::State ResponseParser::end() {
  if (part_ == Part::rest && state_ == State::body) {
    state_ = State::complete;
  } else if (state_ != State::complete && state_ != State::bad) {
    fail_with(empty() ? "the connection was closed before an answer came"
                      : "the connection was closed in the middle of the answer");
  }
  keep_alive_ = false;
  return state_;
}

void ResponseParser::take_line(std::string_view line) {
  switch (part_) {
    case Part::status:
      return take_status(line);
    case Part::fields:
      return line.empty() ? head_done() : take_field(line);
    case Part::chunk_size:
      return take_chunk_size(line);
    case Part::chunk_end:
      if (!line.empty()) return fail_with("a chunk is longer than announced");
      part_ = Part::chunk_size;
      return;
    case Part::trailers:
      // Trailers are skipped: no caller needs them.
      if (line.empty()) state_ = State::complete;
      return;
    case Part::length:
    case Part::chunk:
    case Part::rest:
      return;
  }
}

// Parses "HTTP/1.1 200 OK". The words may be missing.
void ResponseParser::take_status(std::string_view line) {
  const bool version = line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 ");
  const auto status = version ? parse_length(line.substr(9, 3), 10) : std::nullopt;
  if (!status || *status < 100 || (line.size() > 12 && line[12] != ' ') || line.size() < 12)
    return fail_with("not an HTTP answer: " + in_quotes(line));
  http_1_0_ = line[7] == '0';
  head_.status = static_cast<int>(*status);
  part_ = Part::fields;
}

void ResponseParser::take_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
    return fail_with("not a header field: " + in_quotes(line));
  const std::string_view value = strip(line.substr(colon + 1));
  if (std::any_of(value.begin(), value.end(), [](char c) { return is_control(c) && c != '\t'; }))
    return fail_with("control bytes in a header field: " + in_quotes(line));
  head_.fields.push_back({to_lower(line.substr(0, colon)), std::string(value)});
}

void ResponseParser::take_chunk_size(std::string_view line) {
  const std::string_view digits = strip(line.substr(0, line.find(';')));
  const auto size = parse_length(digits, 16);
  if (!size) return fail_with("not a chunk size: " + in_quotes(line));
  left_ = *size;
  part_ = left_ > 0 ? Part::chunk : Part::trailers;
}

void ResponseParser::head_done() {
  constexpr int kSwitching = 101;
  constexpr int kNoContent = 204;
  constexpr int kNotModified = 304;
  if (head_.status == kSwitching) return fail_with("the server switches to another protocol");
  if (head_.status < 200) {  // an interim answer: the final one follows
    head_ = {};
    part_ = Part::status;
    return;
  }
  const std::string connection = to_lower(head_.field("connection"));
  keep_alive_ = http_1_0_ ? connection == "keep-alive" : connection != "close";
  const std::string coding = to_lower(head_.field("transfer-encoding"));
  std::optional<std::uint64_t> length;
  // Two different lengths, or a length beside chunks, are a known way to smuggle a second answer.
  for (const Field& field : head_.fields) {
    if (field.name != "content-length") continue;
    const auto value = parse_length(field.value, 10);
    if (!value || (length && *length != *value) || !coding.empty())
      return fail_with("the answer's length is invalid: " + in_quotes(field.value));
    length = value;
  }
  if (!coding.empty() && coding != "chunked")
    return fail_with("unexpected transfer encoding: " + in_quotes(coding));
  state_ = State::body;
  // These answers have no body, whatever their headers say.
  if (bodiless_ || head_.status == kNoContent || head_.status == kNotModified || length == 0) {
    state_ = State::complete;
  } else if (!coding.empty()) {
    part_ = Part::chunk_size;
  } else if (length) {
    part_ = Part::length;
    left_ = *length;
  } else {
    part_ = Part::rest;
    keep_alive_ = false;
  }
}

void ResponseParser::fail_with(std::string why) {
  error_ = std::move(why);
  state_ = State::bad;
  keep_alive_ = false;
}

}  // namespace lockstep::http
