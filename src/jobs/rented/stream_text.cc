#include "jobs/rented/stream_text.h"

#include <algorithm>
#include <cstddef>

namespace lockstep::jobs::rented {
namespace {

// Separators of ASCII. Terminals show nothing for them, unlike SO and SI, which change the
// character set.
constexpr char kOut = '\x1d';
constexpr char kErr = '\x1e';
constexpr char kEscape = '\x1f';
constexpr char kEscapeBit = 0x40;
constexpr std::string_view kMarks = "\x1d\x1e\x1f";

}  // namespace

std::string StreamEncoder::encode(link::Stream stream, std::string_view bytes) {
  std::string text;
  if (bytes.empty()) return text;
  text.reserve(bytes.size() + 1);
  if (current_ != stream) text += stream == link::Stream::out ? kOut : kErr;
  current_ = stream;
  while (!bytes.empty()) {
    const std::size_t plain = std::min(bytes.find_first_of(kMarks), bytes.size());
    text += bytes.substr(0, plain);
    bytes.remove_prefix(plain);
    if (bytes.empty()) break;
    text += kEscape;
    text += static_cast<char>(bytes.front() ^ kEscapeBit);
    bytes.remove_prefix(1);
  }
  return text;
}

void StreamDecoder::decode(std::string_view text, const Put& put) {
  while (!text.empty()) {
    if (escaped_) {
      escaped_ = false;
      const char byte = static_cast<char>(text.front() ^ kEscapeBit);
      put(current_, {&byte, 1});
      text.remove_prefix(1);
      continue;
    }
    const std::size_t plain = std::min(text.find_first_of(kMarks), text.size());
    if (plain > 0) put(current_, text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const char mark = text.front();
    text.remove_prefix(1);
    if (mark == kEscape)
      escaped_ = true;
    else
      current_ = mark == kOut ? link::Stream::out : link::Stream::err;
  }
}

std::string plain_text(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  StreamDecoder().decode(text, [&](link::Stream, std::string_view bytes) { plain += bytes; });
  return plain;
}

}  // namespace lockstep::jobs::rented
