#include "agent/worst_straggler.h"

#include "agent/job_history.h"

namespace lockstep::agent {

void WorstStraggler::begins(int rank, const std::string& name, TimePoint now) {
  ends(now);
  current_ = {rank, name};
  since_ = now;
}

void WorstStraggler::ends(TimePoint now) {
  if (!since_) return;
  current_.time = std::chrono::duration_cast<std::chrono::milliseconds>(now - *since_);
  since_.reset();
  if (!worst_ || current_.time > worst_->time) worst_ = current_;
}

std::string straggler_line(const std::optional<WorstStraggler::Span>& worst) {
  if (!worst) return {};
  return "straggler: " + worst->name + " for " + duration_text(worst->time.count());
}

}  // namespace lockstep::agent
