// Runs this binary again, in a container on this machine. The process outside passes signals on,
// waits, and returns the exit code.
#pragma once

#include "base/error.h"
#include "container/image.h"
#include "container/mounts.h"
#include "container/runtime.h"

#include <string>
#include <vector>

namespace lockstep::container {

// The options as the user gave them.
struct Options {
  std::string image;
  std::string mounts;                // empty: none
  std::string workdir;               // empty: the working folder
  std::string variables;             // --container-env; empty: none
  std::vector<std::string> folders;  // absolute, for the job's own files; made if missing
};

// What the options mean on this machine.
struct Plan {
  Image image;
  std::vector<Mount> mounts;
  std::string folder;              // the working folder in the container
  std::vector<std::string> named;  // variables that win over the image's
};
// Errors: invalid_input, not_found.
Result<Plan> make_plan(const Options& options);

// Chooses the runtime by the programs in PATH. Errors: not_found.
Result<Chosen> choose_here(const Plan& plan);

// Returns why this machine cannot start a container of the image: not_found (no runtime in `path`,
// which has the form of PATH, or no such file), invalid_input. folder: the working folder of the
// job. Starts nothing, so an image that must be fetched may still fail. may_come: a file that is
// missing is no error, because the job begins later.
Status check_here(const std::string& image, const std::string& folder, const std::string& path,
                  bool may_come = false);

// Returns how each node of a job will choose the runtime, in one line. A file that is missing here
// may be on the nodes.
std::string choice_on_nodes(const std::string& image, const std::string& folder);

// Fetches the image, runs our binary with the words in the container, and returns the exit code
// that the process inside has recorded. The first word is the name by which the binary is called.
// Every process in the container ends with this one, however it ends. The signals must be blocked.
// Errors: unavailable (no image, no record), denied (no container started), canceled.
Result<int> enter(const Plan& plan, const Chosen& chosen, const Words& words);

}  // namespace lockstep::container
