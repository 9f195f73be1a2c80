// The folder that --aid puts first on the PYTHONPATH of the ranks. Its sitecustomize.py lets each
// rank serve PyTorch's control plane on a Unix socket in the folder. Only this user and root may
// enter the folder.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::agent {

extern const std::string_view kRecorderAid;  // the text of sitecustomize.py

// Makes the folder in this user's own folder in TMPDIR. In /tmp, if TMPDIR is a shared disk, can be
// changed by others, or has too long a path.
Result<std::string> make_aid_folder();
std::string aid_socket(const std::string& folder, int rank);
// Removes the folder with all that is in it. Call after all workers have ended.
void remove_aid_folder(const std::string& folder);

}  // namespace lockstep::agent
