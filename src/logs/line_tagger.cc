// The hot path of -t: two memchr scans and two copies per line, no allocation.
#include "logs/line_tagger.h"

#include "logs/line_ends.h"

#include <cstring>

namespace lockstep::logs {

bool LineTagger::ready(std::string_view chunk) const {
  return held_.size() + chunk.size() > kHold ||
         memrchr(chunk.data(), '\n', chunk.size()) != nullptr;
}

void LineTagger::feed(std::string_view chunk, ByteQueue& to) {
  std::size_t whole = chunk.size();
  // Pass on whole lines and hold the rest, so that two workers' lines do not mix on the console.
  if (const void* end = memrchr(chunk.data(), '\n', chunk.size()); end != nullptr) {
    whole = static_cast<std::size_t>(static_cast<const char*>(end) - chunk.data()) + 1;
    // The rest is too long to hold: pass it on unfinished.
    if (chunk.size() - whole > kHold) whole = chunk.size();
  } else if (held_.size() + chunk.size() <= kHold) {
    whole = 0;
  }
  if (whole != 0) {
    flush(to);
    tag(chunk.substr(0, whole), to);
  }
  held_.append(chunk.substr(whole));
}

void LineTagger::flush(ByteQueue& to) {
  tag(held_, to);
  held_.clear();
}

void LineTagger::tag(std::string_view bytes, ByteQueue& to) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  LineEnds ends(bytes);
  while (at != end) {
    // The '\n' of a "\r\n" belongs to the line that '\r' has ended. After a cut, the console has
    // already written it.
    const bool ended_before = state_ == State::after_cr || state_ == State::cut;
    if (*at == '\n' && ended_before) {
      if (state_ == State::after_cr) to.append("\n");
      state_ = State::line_start;
      ++at;
      continue;
    }
    if (state_ != State::in_line) to.append(prefix_);
    const char* stop = ends.next(at);
    const char* next = stop == end ? end : stop + 1;
    to.append({at, static_cast<std::size_t>(next - at)});
    state_ = State::in_line;
    if (stop != end) state_ = *stop == '\r' ? State::after_cr : State::line_start;
    at = next;
  }
}

}  // namespace lockstep::logs
