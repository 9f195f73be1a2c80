// Which steps an environment has behind it, and whether one still holds. Pure.
//
// Every change of the environment by a step begins a new epoch. A step holds while its inputs are
// the same, nobody else has changed the environment, and what changed it since were only steps that
// follow it in the list at hand: those are meant to build upon it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

class StepLog {
 public:
  // From print(). Text that is none gives an empty log: all steps are then done again.
  static StepLog read(std::string_view text);
  std::string print() const;

  // interpreter, environment: what identifies the one and the state of the other. Forgets what
  // others may have undone. A step that was under way when its process died has to be done again.
  void open(const std::string& interpreter, const std::string& environment);

  // steps: names of those that are asked for, in their order.
  bool holds(std::span<const std::string> steps, std::size_t index,
             const std::string& digest) const;
  void starting(const std::string& step);
  // environment: its state behind the step. An empty digest: the step failed.
  void finished(const std::string& step, const std::string& digest, const std::string& environment);

 private:
  struct Entry {
    std::string step;
    std::string digest;           // empty: it does not hold
    std::int64_t held_at = 0;     // the epoch in which it was last seen to hold
    std::int64_t changed_at = 0;  // the last epoch that it began; 0: none
  };

  Entry& entry(const std::string& step);

  std::string interpreter_;
  std::string environment_;
  std::string running_;
  std::int64_t epoch_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace lockstep::setup
