// Detects that a process no longer sends heartbeats (new text every second). Pure.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::slurm {

class HeartbeatWatch {
 public:
  // Counts looks instead of time. A suspended process has not looked, and so declares no peer dead
  // on waking up. An empty beat was read in the middle of a write.
  void look(std::string_view beat) {
    if (beat != last_ && !beat.empty()) {
      last_ = beat;
      looks_ = 0;
    } else {
      ++looks_;
    }
  }
  // Returns how many looks in a row found nothing new.
  int looks() const { return looks_; }
  bool is_gone() const { return looks_ >= kMostLooks; }

 private:
  static constexpr int kMostLooks = 8;

  std::string last_;
  int looks_ = 0;
};

}  // namespace lockstep::slurm
