#include "looks/redo_watch.h"

#include <algorithm>

namespace lockstep::looks {

void RedoWatch::attempt_started() {
  step_.reset();
  before_ = highest_;
  redo_.redoes = false;
}

const Redo& RedoWatch::feed(const std::optional<StepBook::Steps>& steps) {
  if (!steps || begins_anew_) return redo_;
  if (step_ && steps->step < *step_) {
    begins_anew_ = true;
    redo_ = {};
    return redo_;
  }
  step_ = steps->step;
  highest_ = std::max(highest_.value_or(*step_), *step_);
  redo_ = {.redoes = before_ && *step_ < *before_, .guessed = steps->guessed};
  return redo_;
}

}  // namespace lockstep::looks
