// The step of the training that a line of output shows. Pure.
//
// Without a pattern of the user it is a guess from the forms of tqdm, Trainer, Megatron, Lightning
// and torchtitan.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::logs {

struct StepLine {
  double step = 0;  // Trainer counts in parts of epochs
  std::optional<std::int64_t> total = {};
  bool is_epoch = false;  // counts epochs, not steps
  bool guessed = true;

  friend bool operator==(const StepLine&, const StepLine&) = default;
};

// A user's pattern (--progress): a POSIX extended regular expression whose first group is the step.
// The C library's matcher needs time and memory that grow with a power of the line's length, so
// lines are cut to kMostLine bytes. Back references and counted repeats, which grow faster, are
// refused.
class StepPattern {
 public:
  static constexpr std::size_t kMostLine = 512;
  static constexpr std::size_t kMostPattern = 256;
  static constexpr int kMostPluses = 6;

  // Fails with invalid_input, and says what to write.
  static Result<StepPattern> make(const std::string& pattern);
  // nullopt: the line does not match, or its group is not a number.
  std::optional<StepLine> match(std::string_view line) const;

 private:
  struct Compiled;
  explicit StepPattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

// Guesses. nullopt: the line shows no step. Of a line with several parts between carriage returns,
// the last part counts. Terminal sequences are skipped.
std::optional<StepLine> guessed_step(std::string_view line);

// By the pattern if there is one, else a guess.
std::optional<StepLine> step_of(std::string_view line, const std::optional<StepPattern>& pattern);

}  // namespace lockstep::logs
