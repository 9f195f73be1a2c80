// What was written to somebody who may lose it on the way: its last bytes, and which lines of them
// never reached the file that they were meant for. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::slurm {

class LineHistory {
 public:
  explicit LineHistory(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  void add(std::string_view bytes);
  // file_end: the last bytes of a file that got lines of others too. Lines arrive in their order,
  // so all before the last one that is there have arrived.
  std::string missing_from(std::string_view file_end) const;

 private:
  std::size_t most_bytes_;
  std::string bytes_;
};

}  // namespace lockstep::slurm
