// The working folder of a job on its hosts, the preparation of the hosts (the project's files, then
// packages), and the outputs that come back.
#pragma once

#include "cli/environment_options.h"
#include "cli/remote_options.h"
#include "hosts/host_link.h"
#include "project/project.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

struct Ground {
  std::optional<project::Project> project;  // the project to sync first; nullopt: sync nothing
  std::string folder;  // the job's folder on the hosts, relative to the home there or absolute
};

// Returns the job's folder and project. here: the job runs on this machine, so nothing is synced.
// Looks at local folders only. Errors: invalid_input, or not_found if the current directory no
// longer exists.
Result<Ground> ground_of(const RemoteOptions& options, bool here);

// Returns the path of the script on the hosts. An absolute path inside the project becomes relative
// to the job's folder, since the project lies at another path there. Other paths stay, as does any
// path if only the hosts know the way: from an absolute --cwd to a project in the home.
std::string script_there(const std::string& script, const Ground& ground);

// Syncs the project's files to all hosts, then installs packages. Returns 0 if all hosts are ready,
// else the code of the first host that is not, after printing the hosts' errors. Errors:
// invalid_input (--install without a project).
Result<int> make_ready(std::string_view program, const RemoteOptions& options,
                       const std::vector<hosts::HostPlace>& places, const Ground& ground,
                       const ChosenEnvironment& environment);

// Refuses --back for files outside of the project, or without a synced project: invalid_input.
// here: the job runs on this machine.
Status check_outputs(const RemoteOptions& options, const Ground& ground, bool here);

// Brings the files of --back from the hosts of a job that has ended. tell: takes what came, and
// remarks. Errors as project::bring_outputs().
Status bring_outputs(const Parsed& parsed, const RemoteOptions& options, const Ground& ground,
                     const std::vector<hosts::HostPlace>& from,
                     const std::function<void(const std::string&)>& tell);

}  // namespace lockstep::cli
