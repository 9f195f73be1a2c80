// Whether somebody who beats (writes something new every second) has stopped. Pure.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::slurm {

class Silence {
 public:
  // Looks are counted and not time: whoever was stopped itself has not looked, and takes nobody for
  // gone when it wakes. Empty: the beat was caught in the middle of being written.
  void look(std::string_view beat) {
    if (beat != last_ && !beat.empty()) {
      last_ = beat;
      looks_ = 0;
    } else {
      ++looks_;
    }
  }
  // How many looks in a row have found nothing new.
  int looks() const { return looks_; }
  bool is_gone() const { return looks_ >= kMostLooks; }

 private:
  static constexpr int kMostLooks = 8;

  std::string last_;
  int looks_ = 0;
};

}  // namespace lockstep::slurm
