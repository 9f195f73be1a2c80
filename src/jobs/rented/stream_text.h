// Two output streams in one text, in the order in which they were read. A control character before
// each run of bytes names its stream, so a person can still read the text with any tool. A text
// that leaves bytes out says at which byte of both streams together it goes on. Pure.
#pragma once

#include "link/frames.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::jobs::rented {

// Turns bytes of the streams into text. Each file needs an encoder of its own, from the first byte
// on.
class StreamEncoder {
 public:
  // Returns the text to append. Bytes that would read as control characters are escaped, so the
  // text may be longer than `bytes`, but at most twice as long plus one.
  std::string encode(link::Stream stream, std::string_view bytes);
  // Returns the text to append where the next byte is byte `at` of both streams together.
  static std::string place(std::uint64_t at);
  // Returns the text that tells a client that the course has got one Ctrl-C of the user.
  static std::string canceled();

 private:
  std::optional<link::Stream> current_;
};

// Turns the text back. The text may come in pieces of any size.
class StreamDecoder {
 public:
  using Put = std::function<void(link::Stream stream, std::string_view bytes)>;

  // Calls put for each run of bytes. The views are valid only during the call.
  void decode(std::string_view text, const Put& put);
  // The next text is the beginning of a file, and goes on at this byte unless it says another.
  void begin(std::uint64_t at);
  // Returns how many bytes of both streams came before. Within `put`: before the run.
  std::uint64_t at() const { return at_; }
  // Returns how often the text has said canceled() since the last call.
  int take_canceled() { return std::exchange(canceled_, 0); }

 private:
  void take_note(char byte);

  link::Stream current_ = link::Stream::out;  // text before the first mark: of an older version
  bool escaped_ = false;
  std::uint64_t at_ = 0;
  int canceled_ = 0;
  std::optional<std::string> note_;  // unfinished
};

// Returns the bytes of both streams without the marks.
std::string plain_text(std::string_view text);

}  // namespace lockstep::jobs::rented
