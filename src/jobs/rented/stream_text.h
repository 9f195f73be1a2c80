// Two output streams in one text, in the order in which they were read. A control character before
// each run of bytes names its stream, so a person can still read the text with any tool. Pure.
#pragma once

#include "link/frames.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::jobs::rented {

// Turns bytes of the streams into text. Each file needs an encoder of its own, from the first byte
// on.
class StreamEncoder {
 public:
  // Returns the text to append. Bytes that would read as control characters are escaped, so the
  // text may be longer than `bytes`, but at most twice as long plus one.
  std::string encode(link::Stream stream, std::string_view bytes);

 private:
  std::optional<link::Stream> current_;
};

// Turns the text back. The text may come in pieces of any size.
class StreamDecoder {
 public:
  using Put = std::function<void(link::Stream stream, std::string_view bytes)>;

  // Calls put for each run of bytes. The views are valid only during the call.
  void decode(std::string_view text, const Put& put);
  // The next text is the beginning of a file.
  void reset() { *this = {}; }

 private:
  link::Stream current_ = link::Stream::out;  // text before the first mark: of an older version
  bool escaped_ = false;
};

// Returns the bytes of both streams without the marks.
std::string plain_text(std::string_view text);

}  // namespace lockstep::jobs::rented
