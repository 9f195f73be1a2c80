// The outputs (--back) of a job on rented machines: brought from a machine, and sent to the
// machines of the next attempt.
#pragma once

#include "base/error.h"
#include "project/project.h"
#include "project/sync_tree.h"

#include <string>
#include <vector>

namespace lockstep::jobs::rented {

// Brings the paths of the project from a machine, and remarks what came. invalid_input: a path lies
// outside of the project.
Status bring_outputs(const hosts::HostPlace& from, const project::Project& project,
                     const std::vector<std::string>& paths, const project::SyncOptions& settings);
// Sends those of the paths that are folders here, with files that git ignores.
Status send_outputs(const std::vector<hosts::HostPlace>& to, const project::Project& project,
                    const std::vector<std::string>& paths, project::SyncOptions settings = {});

}  // namespace lockstep::jobs::rented
