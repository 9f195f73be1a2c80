// The output of `lockstep exec --json`.
#pragma once

#include "codec/json.h"
#include "hosts/command_run.h"

#include <vector>

namespace lockstep::cli {

// Output that is no UTF-8 is there twice: with the wrong bytes replaced, and exactly, in base64.
nlohmann::ordered_json exec_json(const std::vector<hosts::HostPlace>& hosts,
                                 const std::vector<hosts::HostEnding>& endings);

}  // namespace lockstep::cli
