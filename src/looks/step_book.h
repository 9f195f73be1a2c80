// The steps that ranks print: the newest step of each rank, and how fast the steps come. Pure.
#pragma once

#include "io/loop.h"
#include "logs/step_line.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep::looks {

class StepBook {
 public:
  struct Steps {
    std::int64_t step = 0;
    // Steps per second over the last minute. nullopt: the step has not changed yet.
    std::optional<double> per_s = {};
    bool guessed = false;
  };

  // pattern: nullopt: steps are guessed.
  explicit StepBook(std::optional<logs::StepPattern> pattern) : pattern_(std::move(pattern)) {}

  // Takes the newest line of a rank's output. Lines without a step change nothing, nor do lines
  // that only count epochs.
  void feed(int rank, std::string_view line, io::TimePoint now);
  // nullopt: the rank has printed no step.
  std::optional<Steps> of(int rank) const;
  // The ranks begin anew.
  void clear() { ranks_.clear(); }

 private:
  struct Sample {
    io::TimePoint at;
    std::int64_t step;
  };
  struct Rank {
    std::deque<Sample> samples = {};  // of different steps, the oldest first; never empty
    bool guessed = false;
  };

  std::optional<logs::StepPattern> pattern_;
  std::map<int, Rank> ranks_;
};

}  // namespace lockstep::looks
