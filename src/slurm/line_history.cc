#include "slurm/line_history.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace lockstep::slurm {
namespace {

// A line by its hash: the history has up to 8 MiB, and the file 32 MiB.
struct Line {
  std::size_t hash;
  std::size_t end;  // offset behind the newline
  bool operator<(const Line& other) const {
    return hash != other.hash ? hash < other.hash : end < other.end;
  }
};

// Returns the whole lines of a text, sorted by hash and position.
std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  std::size_t begin = 0;
  for (std::size_t at = text.find('\n'); at != std::string_view::npos;
       at = text.find('\n', begin)) {
    lines.push_back({std::hash<std::string_view>()(text.substr(begin, at - begin)), at + 1});
    begin = at + 1;
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

void LineHistory::add(std::string_view bytes) {
  bytes_ += bytes;
  // Cutting only at twice the size keeps the cost per byte constant.
  if (bytes_.size() <= 2 * most_bytes_) return;
  const std::size_t cut = bytes_.find('\n', bytes_.size() - most_bytes_);
  bytes_.erase(0, cut == std::string::npos ? bytes_.size() - most_bytes_ : cut + 1);
}

// Equal lines are counted: if three were sent, the file must have three, or the last one is
// missing.
std::string LineHistory::missing_from(std::string_view file_end) const {
  const std::vector<Line> there = lines_of(file_end);
  const std::vector<Line> sent = lines_of(bytes_);
  std::size_t arrived = 0;
  auto found = there.begin();
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (i == 0 || sent[i].hash != sent[i - 1].hash)
      found = std::lower_bound(found, there.end(), Line{sent[i].hash, 0});
    if (found == there.end() || found->hash != sent[i].hash) continue;
    ++found;
    arrived = std::max(arrived, sent[i].end);
  }
  return bytes_.substr(arrived);
}

}  // namespace lockstep::slurm
