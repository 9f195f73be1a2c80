// Sends the log of a course to a client that may have seen its beginning. Pure.
#pragma once

#include "jobs/rented/stream_text.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::jobs::rented {

class ClientLog {
 public:
  // shown: the place in the whole log from which on the client needs the log.
  explicit ClientLog(std::uint64_t shown) : next_(shown) {}

  // Returns the text for the client from the bytes at this place of the log.
  std::string encode(std::uint64_t at, link::Stream stream, std::string_view bytes);
  // Returns the text of bytes that are not part of the log.
  std::string add(link::Stream stream, std::string_view bytes) {
    return encoder_.encode(stream, bytes);
  }
  // Returns true once if the last text does not go on where the text before it ended.
  bool take_gap() { return std::exchange(gap_, false); }

 private:
  std::uint64_t next_;
  StreamEncoder encoder_;
  bool gap_ = false;
};

}  // namespace lockstep::jobs::rented
