// The hot path of -t: two memchr scans and two copies a line, no allocation.
#include "logs/line_tagger.h"

#include <cstring>

namespace lockstep::logs {
namespace {
const char* find_or_end(const char* from, const char* end, char wanted) {
  const auto size = static_cast<std::size_t>(end - from);
  const void* found = size == 0 ? nullptr : std::memchr(from, wanted, size);
  return found != nullptr ? static_cast<const char*>(found) : end;
}
}  // namespace

bool LineTagger::ready(std::string_view chunk) const {
  return held_.size() + chunk.size() > kHold || chunk.rfind('\n') != std::string_view::npos;
}

void LineTagger::feed(std::string_view chunk, ByteQueue& to) {
  std::size_t whole = chunk.size();
  if (const void* end = memrchr(chunk.data(), '\n', chunk.size()); end != nullptr) {
    whole = static_cast<std::size_t>(static_cast<const char*>(end) - chunk.data()) + 1;
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
  const char* newline = find_or_end(at, end, '\n');
  const char* cr = find_or_end(at, end, '\r');
  while (at != end) {
    if (newline < at) newline = find_or_end(at, end, '\n');
    if (cr < at) cr = find_or_end(at, end, '\r');
    const bool ends_before = *at == '\n' && (state_ == State::after_cr || state_ == State::cut);
    if (ends_before) {
      if (state_ == State::after_cr) to.append("\n");
      state_ = State::line_start;
      ++at;
      continue;
    }
    if (state_ != State::in_line) to.append(prefix_);
    const char* stop = std::min(newline, cr);
    const char* next = stop == end ? end : stop + 1;
    to.append({at, static_cast<std::size_t>(next - at)});
    state_ = stop == end ? State::in_line : (stop == cr ? State::after_cr : State::line_start);
    at = next;
  }
}

}  // namespace lockstep::logs
