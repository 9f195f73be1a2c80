// The last bytes written to a receiver that may lose them, to find out which lines never reached
// the receiver's file. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::slurm {

class LineHistory {
 public:
  // Keeps between `most_bytes` and twice as many.
  explicit LineHistory(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  void add(std::string_view bytes);
  // Returns the end of the history that is missing in a file. file_end: the last bytes of the file,
  // which also holds lines of other writers. Lines arrive in order, so everything before the last
  // line found has arrived.
  std::string missing_from(std::string_view file_end) const;

 private:
  std::size_t most_bytes_;
  std::string bytes_;
};

}  // namespace lockstep::slurm
