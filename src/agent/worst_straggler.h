// Finds the straggler that slowed the job for the longest time without a break. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace lockstep::agent {

class WorstStraggler {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Span {
    int rank = 0;
    std::string name = {};  // "rank 3 (node n1, GPU 3)"
    std::chrono::milliseconds time = {};
  };

  void begins(int rank, const std::string& name, TimePoint now);
  // Call when the straggler has recovered or its attempt is over. Does nothing without a straggler.
  void ends(TimePoint now);
  const std::optional<Span>& worst() const { return worst_; }

 private:
  Span current_;
  std::optional<TimePoint> since_;
  std::optional<Span> worst_;
};

// "straggler: rank 3 (node n1, GPU 3) for 12 min 5 s". "": none.
std::string straggler_line(const std::optional<WorstStraggler::Span>& worst);

}  // namespace lockstep::agent
