// Lines of workers' output, of any bytes: a step that is a number, or none, by a guess and by a
// user's pattern. The first line is the pattern.
#include "base/error.h"
#include "base/text.h"
#include "logs/step_line.h"

#include <stddef.h>
#include <stdint.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

using namespace lockstep;  // NOLINT

namespace {

void check_step(const std::optional<logs::StepLine>& step, bool guessed) {
  if (!step) return;
  LOCKSTEP_CHECK(std::isfinite(step->step) && step->step >= 0 && step->guessed == guessed);
  LOCKSTEP_CHECK(!step->total || *step->total >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto lines = split(text, '\n');
  const auto pattern = logs::StepPattern::make(lines.empty() ? "" : lines.front());
  for (const std::string& line : lines) {
    check_step(logs::guessed_step(line), true);
    // A line of a megabyte is one line, too.
    if (pattern) check_step(logs::step_of(line, *pattern), false);
  }
  check_step(logs::guessed_step(text), true);
  return 0;
}
