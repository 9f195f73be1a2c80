// Finds repeated steps of the training by the steps that a rank prints: after a restart a job goes
// on from a checkpoint, below the highest step before. Pure.
#pragma once

#include "looks/step_book.h"

#include <cstdint>
#include <optional>

namespace lockstep::looks {

struct Redo {
  bool redoes = false;  // the step now is below the highest step of earlier attempts
  // Whether the steps are guessed. nullopt: no step lines are known, or their count begins anew
  // within an attempt, as that of an epoch: then a low step does not mean a repeated one.
  std::optional<bool> guessed = {};
};

class RedoWatch {
 public:
  void attempt_started();
  // Expects the step of one rank after each look, of the same rank throughout an attempt. nullopt:
  // it has printed none yet.
  const Redo& feed(const std::optional<StepBook::Steps>& steps);

 private:
  Redo redo_;
  std::optional<std::int64_t> step_;     // in this attempt
  std::optional<std::int64_t> highest_;  // of all attempts
  std::optional<std::int64_t> before_;   // the highest when this attempt began
  bool begins_anew_ = false;
};

}  // namespace lockstep::looks
