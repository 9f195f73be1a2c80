// Keeps the tail of a stream and makes it readable.
#include "logs/tail_ring.h"

#include "base/utf8.h"

#include <algorithm>

namespace lockstep::logs {
namespace {
// Returns the length of the control sequence "ESC [ ... letter" at the start. 0: none.
std::size_t csi_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  std::size_t at = 2;
  while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x3f)
    ++at;
  return at < text.size() && text[at] >= 0x40 && text[at] <= 0x7e ? at + 1 : 0;
}

void append_shown(std::string_view line, std::string& to) {
  while (!line.empty()) {
    std::size_t size = line.front() == '\t' ? 1 : shown_length(line);
    if (size != 0) {
      to.append(line.substr(0, size));
      // Colors and cursor moves are dropped: the report may be read in a file or in JSON.
    } else if (size = csi_length(line); size == 0) {
      append_escaped(line.front(), to);
      size = 1;
    }
    line.remove_prefix(size);
  }
}

// PyTorch says this each time that the agent asks for a flight recorder. The line would hide the
// last line of the training.
bool is_about_dumps(std::string_view line) {
  return line.find("ProcessGroupNCCL preparing to dump debug info") != std::string_view::npos;
}

// The last drawing of a redrawn line.
std::string_view last_drawing(std::string_view line) {
  while (line.ends_with('\r'))
    line.remove_suffix(1);
  const std::size_t cr = line.rfind('\r');
  return cr == std::string_view::npos ? line : line.substr(cr + 1);
}
}  // namespace

void TailRing::append(std::string_view bytes) {
  if (bytes.size() > kSize) {
    bytes.remove_prefix(bytes.size() - kSize);
    cut_ = true;
  }
  const std::size_t room = std::min(kSize - ring_.size(), bytes.size());
  ring_.append(bytes.substr(0, room));
  bytes.remove_prefix(room);
  while (!bytes.empty()) {
    cut_ = true;
    const std::size_t size = std::min(kSize - next_, bytes.size());
    std::copy_n(bytes.begin(), size, ring_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = (next_ + size) % kSize;
    bytes.remove_prefix(size);
  }
}

void NewestBytes::append(std::string_view bytes) {
  if (bytes.size() >= kMost) {
    bytes_.assign(bytes.substr(bytes.size() - kMost));
    return;
  }
  // Old bytes go in bulk, so that many short lines do not move them each time.
  if (bytes_.size() + bytes.size() > 2 * kMost) bytes_.erase(0, bytes_.size() - kMost);
  bytes_.append(bytes);
}

std::string newest_line(std::string_view bytes) {
  const std::size_t end = bytes.rfind('\n');
  const std::string_view open = bytes.substr(end == std::string_view::npos ? 0 : end + 1);
  // tqdm draws "\r 10%|#" and writes no end of line until the bar is full.
  if (open.find('\r') != std::string_view::npos)
    if (std::string drawn = tail_text(open, 1, false); !drawn.empty()) return drawn;
  bytes = bytes.substr(0, end == std::string_view::npos ? 0 : end);
  while (!bytes.empty()) {
    const std::size_t before = bytes.rfind('\n');
    const std::size_t from = before == std::string_view::npos ? 0 : before + 1;
    std::string line = tail_text(bytes.substr(from), 1, false);
    if (line.find_first_not_of(" \t") != std::string::npos && !is_about_dumps(line)) return line;
    bytes = bytes.substr(0, from == 0 ? 0 : before);
  }
  return {};
}

std::string TailRing::bytes() const {
  return ring_.substr(next_) + ring_.substr(0, next_);
}

bool TailRing::has(std::string_view words) const {
  if (ring_.find(words) != std::string::npos) return true;
  if (next_ == 0) return false;
  // Across the end of the ring, where its newest bytes are not.
  const std::size_t most = std::min(words.size(), ring_.size());
  return (ring_.substr(ring_.size() - most) + ring_.substr(0, most)).find(words) !=
         std::string::npos;
}

std::string tail_text(std::string_view bytes, std::size_t lines, bool cut) {
  if (lines == 0) return {};
  if (bytes.ends_with('\n')) bytes.remove_suffix(1);
  std::size_t from = bytes.size();
  for (; lines > 0 && from != std::string_view::npos; --lines) {
    from = from == 0 ? std::string_view::npos : bytes.rfind('\n', from - 1);
  }
  // Fewer lines than asked for. The first piece may lack its beginning: leave it out unless it is
  // all there is.
  if (from != std::string_view::npos) {
    bytes.remove_prefix(from + 1);
  } else if (const std::size_t first = bytes.find('\n'); cut && first != std::string_view::npos) {
    bytes.remove_prefix(first + 1);
  }
  std::string text;
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    append_shown(last_drawing(bytes.substr(0, end)), text);
    if (end < bytes.size()) text += '\n';
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return text;
}

}  // namespace lockstep::logs
