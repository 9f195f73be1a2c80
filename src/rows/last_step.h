// The step of the training that a row's output shows last.
#pragma once

#include "codec/json.h"
#include "logs/step_line.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::rows {

inline constexpr std::size_t kMostStepLine = 400;  // bytes

struct LastStep {
  std::int64_t step = 0;
  std::string line = {};  // one line, printable

  friend bool operator==(const LastStep&, const LastStep&) = default;
};

// Returns the last line of the text that shows a step. Lines that only count epochs show none.
// Pure.
std::optional<LastStep> last_step(std::string_view text,
                                  const std::optional<logs::StepPattern>& pattern);
// Reads the ends of the logs that the report of a row's `lockstep run` names: of the first worker,
// in its last attempt. stdout counts before stderr.
std::optional<LastStep> last_step_of_report(const nlohmann::json& report,
                                            const std::optional<logs::StepPattern>& pattern);
// Reads the end of a file with the output of all workers. Lines of the first worker begin with
// "[rank0]: ", or all lines with no rank.
std::optional<LastStep> last_step_of_output(const std::string& path,
                                            const std::optional<logs::StepPattern>& pattern);

}  // namespace lockstep::rows
