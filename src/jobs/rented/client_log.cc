#include "jobs/rented/client_log.h"

#include <algorithm>

namespace lockstep::jobs::rented {

std::string ClientLog::encode(std::uint64_t at, link::Stream stream, std::string_view bytes) {
  const std::uint64_t seen = std::min<std::uint64_t>(next_ - std::min(at, next_), bytes.size());
  bytes.remove_prefix(static_cast<std::size_t>(seen));
  std::string text;
  if (bytes.empty()) return text;
  at += seen;
  if (at != next_) {
    gap_ = true;
    text = StreamEncoder::place(at);
  }
  next_ = at + bytes.size();
  return text += encoder_.encode(stream, bytes);
}

}  // namespace lockstep::jobs::rented
