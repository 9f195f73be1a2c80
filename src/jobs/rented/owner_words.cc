#include "jobs/rented/owner_words.h"

#include "base/text.h"

#include <algorithm>

namespace lockstep::jobs::rented {

void OwnerWords::end_line(std::string& shown) {
  shown += printable(line_, kMostLine) + "\n";
  line_.clear();
}

std::string OwnerWords::take(std::string_view bytes) {
  std::string shown;
  if (left_ == 0 || bytes.empty()) return shown;
  const bool too_many = bytes.size() >= left_;
  bytes = bytes.substr(0, left_);
  left_ -= bytes.size();
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.find('\n'), bytes.size());
    // Keep a byte more than printable() shows: printable() then ends the line with "...".
    line_ += bytes.substr(0, std::min(size, kMostLine + 1 - line_.size()));
    bytes.remove_prefix(size);
    if (bytes.empty()) break;
    bytes.remove_prefix(1);
    end_line(shown);
  }
  if (too_many) shown += end() + "the host says more, which is not shown\n";
  return shown;
}

std::string OwnerWords::end() {
  std::string shown;
  if (!line_.empty()) end_line(shown);
  return shown;
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    shown += printable(line, line.size()) + "\n";
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return shown;
}

}  // namespace lockstep::jobs::rented
