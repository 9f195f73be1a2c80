#include "jobs/rented/stream_text.h"

#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

// Separators of ASCII. Terminals show nothing for them, unlike SO and SI, which change the
// character set.
constexpr char kNote = '\x1c';  // a note about the text follows, up to a newline
constexpr char kOut = '\x1d';
constexpr char kErr = '\x1e';
constexpr char kEscape = '\x1f';
// The byte behind kEscape has this bit flipped: no mark stands there in its own form.
constexpr char kEscapeBit = 0x40;
// The digits of the highest place. The host may be damaged, and send a note without an end.
constexpr std::size_t kMostNote = 20;
constexpr std::string_view kCanceled = "canceled";
constexpr std::string_view kMarks = "\x1c\x1d\x1e\x1f";

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

std::string StreamEncoder::place(std::uint64_t at) {
  return kNote + std::to_string(at) + "\n";
}

std::string StreamEncoder::canceled() {
  return kNote + std::string(kCanceled) + "\n";
}

void StreamDecoder::begin(std::uint64_t at) {
  *this = {};
  at_ = at;
}

void StreamDecoder::take_note(char byte) {
  if (byte != '\n') {
    if (note_->size() < kMostNote) *note_ += byte;
    return;
  }
  if (*note_ == kCanceled)
    ++canceled_;
  else if (const auto at = parse_int(*note_); at && *at >= 0)
    at_ = static_cast<std::uint64_t>(*at);
  note_.reset();
}

void StreamDecoder::decode(std::string_view text, const Put& put) {
  const auto pass = [&](std::string_view bytes) {
    put(current_, bytes);
    at_ += bytes.size();
  };
  while (!text.empty()) {
    const char first = text.front();
    if (note_ || escaped_) text.remove_prefix(1);
    if (note_) {
      take_note(first);
      continue;
    }
    if (std::exchange(escaped_, false)) {
      const char byte = static_cast<char>(first ^ kEscapeBit);
      pass({&byte, 1});
      continue;
    }
    const std::size_t plain = std::min(text.find_first_of(kMarks), text.size());
    if (plain > 0) pass(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const char mark = text.front();
    text.remove_prefix(1);
    if (mark == kEscape)
      escaped_ = true;
    else if (mark == kNote)
      note_.emplace();
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
