// The facts of a node and the decision as JSON: what nodes send each other, and the file in the
// job's folder. Pure.
#pragma once

#include "base/error.h"
#include "slurm/preflight.h"

#include <string>
#include <string_view>

namespace lockstep::slurm {

std::string facts_text(const NodeFacts& facts);
// nodes: how many there are.
Result<NodeFacts> facts_from_text(std::string_view text, int nodes);

std::string decision_text(const PreflightDecision& decision);
Result<PreflightDecision> decision_from_text(std::string_view text);

// What the Python of the ranks prints, line by line, into `answer`.
void take_python_line(std::string_view line, PythonAnswer& answer);

}  // namespace lockstep::slurm
