// The hot path of -t: two memchr scans and two copies per line, no allocation.
#include "logs/line_tagger.h"

#include "logs/line_ends.h"

#include <cstring>

namespace lockstep::logs {
namespace {

// Buffers of long lines are freed: few lines are long, and a node may have hundreds of streams.
constexpr std::size_t kKeep = 64 << 10;
// rich draws bars of several rows: one such sequence for each row, then the rows.
constexpr std::string_view kCursorUp = "\x1b[1A";

void clear_buffer(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kKeep) buffer.shrink_to_fit();
}

bool contains(std::string_view bytes, char c) {
  return bytes.find(c) != bytes.npos;
}

}  // namespace

bool LineTagger::ready(std::string_view chunk) const {
  if (held_.size() + chunk.size() > kHold) return true;
  if (memrchr(chunk.data(), '\n', chunk.size()) != nullptr) return true;
  // The line is on the console already. A '\r' begins a new frame of a progress bar, which waits
  // for its own rest.
  return state_ == State::in_line && held_.empty() && !chunk.empty() && !contains(chunk, '\r');
}

void LineTagger::feed(std::string_view chunk, ByteQueue& to) {
  std::size_t whole = chunk.size();
  // Pass on whole lines and hold the rest, so that two workers' lines do not mix on the console.
  if (const void* end = memrchr(chunk.data(), '\n', chunk.size()); end != nullptr) {
    whole = static_cast<std::size_t>(static_cast<const char*>(end) - chunk.data()) + 1;
    // The rest is too long to hold: pass it on unfinished.
    if (chunk.size() - whole > kHold) whole = chunk.size();
  } else if (!ready(chunk)) {
    whole = 0;
  }
  if (whole != 0) {
    flush(to);
    tag(chunk.substr(0, whole), to);
  }
  hold(chunk.substr(whole));
  if (whole != 0) moves_up_ = holds() && chunk.substr(0, whole).find(kCursorUp) != chunk.npos;
}

void LineTagger::flush(ByteQueue& to) {
  tag(held_, to);
  clear_held();
}

void LineTagger::drop_held() {
  clear_held();
  clear_buffer(shown_);
}

void LineTagger::hold(std::string_view bytes) {
  held_.append(bytes);
  held_cr_ = held_cr_ || contains(bytes, '\r');
}

void LineTagger::clear_held() {
  clear_buffer(held_);
  held_cr_ = false;
  moves_up_ = false;
}

void LineTagger::tag(std::string_view bytes, ByteQueue& to) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  const char* line = nullptr;  // start of the last line, if that line starts in `bytes`
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
    // The line was interrupted: show it whole. A '\r' draws another frame instead.
    const bool again = state_ == State::cut && *at != '\r' && !shown_.empty();
    if (state_ != State::in_line) to.append(prefix_);
    if (again) to.append(shown_);
    if (state_ != State::in_line && !again) line = at;
    const char* stop = ends.next(at);
    const char* next = stop == end ? end : stop + 1;
    to.append({at, static_cast<std::size_t>(next - at)});
    state_ = State::in_line;
    if (stop != end) state_ = *stop == '\r' ? State::after_cr : State::line_start;
    at = next;
  }
  if (line != nullptr) shown_.clear();
  remember(line != nullptr ? std::string_view(line, end) : bytes, line != nullptr);
}

void LineTagger::remember(std::string_view rest, bool from_start) {
  if (rest.empty()) return;
  const bool too_long = (shown_.empty() && !from_start) || shown_.size() + rest.size() > kHold;
  if (state_ != State::in_line || too_long)
    clear_buffer(shown_);
  else
    shown_.append(rest);
}

}  // namespace lockstep::logs
