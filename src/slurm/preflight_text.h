// Converts node facts and decisions to and from JSON: the messages between nodes, and the decision
// file in the job's folder. Pure.
#pragma once

#include "base/error.h"
#include "slurm/preflight.h"

#include <string>
#include <string_view>

namespace lockstep::slurm {

std::string facts_text(const NodeFacts& facts);
// Errors: corrupt. nodes: number of nodes; drops indexes out of range.
Result<NodeFacts> facts_from_text(std::string_view text, int nodes);

std::string decision_text(const PreflightDecision& decision);
Result<PreflightDecision> decision_from_text(std::string_view text);

// Parses one line that the ranks' Python printed, and updates `answer`.
void take_python_line(std::string_view line, PythonAnswer& answer);

}  // namespace lockstep::slurm
