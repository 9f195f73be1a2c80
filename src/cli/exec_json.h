// The output of `lockstep exec --json`.
#pragma once

#include "codec/json.h"
#include "hosts/command_run.h"

#include <vector>

namespace lockstep::cli {

// Returns the exit code and each host's code, error and output. Output that is not UTF-8 appears
// twice: with wrong bytes replaced, and exact in base64.
nlohmann::ordered_json exec_json(const std::vector<hosts::HostPlace>& hosts,
                                 const std::vector<hosts::HostEnding>& endings);

}  // namespace lockstep::cli
