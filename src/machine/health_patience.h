// How long a failed health check is repeated before the machine counts as sick. Machines answer ssh
// before they are ready: drivers are still being installed, or NVSwitches have no fabric yet. Pure.
#pragma once

#include "machine/health.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::machine {

// The patience with one machine over all its checks.
class HealthPatience {
 public:
  struct Word {
    enum class Kind { healthy, wait, sick };
    Kind kind = Kind::healthy;
    std::string text = {};  // wait: "waits for ..."; sick: the defect. One line
  };

  // most: the limit for all waiting together, from the first failed check on.
  explicit HealthPatience(std::chrono::milliseconds most) : most_(most) {}

  // Judges one check. now: time since any fixed moment, the same in all calls.
  Word judge(const std::vector<HealthFinding>& findings, std::chrono::milliseconds now);

 private:
  std::chrono::milliseconds most_;
  std::optional<std::chrono::milliseconds> since_;
};

}  // namespace lockstep::machine
