// The log of steps done to an environment, and whether a step still holds. Pure.
//
// Each change of the environment by a step begins a new epoch. A step holds while three things are
// true:
// - Its inputs are the same.
// - Only our own steps have changed the environment.
// - Only later steps of the list have changed it since: they are meant to build on this one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

class StepLog {
 public:
  // Reads the text of print(). Text that cannot be read gives an empty log: all steps are done
  // again.
  static StepLog read(std::string_view text);
  std::string print() const;

  // Starts an install. interpreter and environment: digests of the interpreter and of the
  // environment's packages. Forgets all steps if another tool may have undone them. A step that was
  // running when its process died must be done again.
  void open(const std::string& interpreter, const std::string& environment);

  // Returns true if step `index` of `steps` holds. steps: names of the requested steps, in order.
  bool holds(std::span<const std::string> steps, std::size_t index,
             const std::string& digest) const;
  void starting(const std::string& step);
  // environment: digest of the packages after the step. digest: of the step's inputs; empty: the
  // step failed.
  void finished(const std::string& step, const std::string& digest, const std::string& environment);

 private:
  struct Entry {
    std::string step;
    std::string digest;           // empty: the step does not hold
    std::int64_t held_at = 0;     // the epoch in which the step was last known to hold
    std::int64_t changed_at = 0;  // the last epoch that the step began; 0: none
  };

  Entry& entry(const std::string& step);

  std::string interpreter_;
  std::string environment_;
  std::string running_;
  std::int64_t epoch_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace lockstep::setup
