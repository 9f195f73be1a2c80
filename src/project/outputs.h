// The outputs (--back) of a job: brought from its hosts, and sent to the machines of the next
// attempt of a rented job.
#pragma once

#include "base/error.h"
#include "project/project.h"
#include "project/sync_tree.h"

#include <string>
#include <vector>

namespace lockstep::project {

// Brings the paths of the project from these hosts, one host after another, and remarks what came.
// Where a host fails, the others still bring theirs: the last error is returned, the earlier ones
// are remarks. not_found: no host has a path. canceled: a signal ended it, Error::sys is its
// number. invalid_input: a path lies outside of the project.
Status bring_outputs(const std::vector<hosts::HostPlace>& from, const Project& project,
                     const std::vector<std::string>& paths, const SyncOptions& settings);
// Sends each path that is a folder here, with files that git ignores.
Status send_outputs(const std::vector<hosts::HostPlace>& to, const Project& project,
                    const std::vector<std::string>& paths, SyncOptions settings = {});

}  // namespace lockstep::project
