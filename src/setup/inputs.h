// The digest of all that a step is made of: a step is skipped only while it stays the same.
#pragma once

#include "base/error.h"
#include "setup/spec.h"

#include <string>
#include <string_view>

namespace lockstep::setup {

// Content of a file, or of a folder's files with their names, execute bits and links. What builds
// and runs leave there does not count (.git, __pycache__, *.pyc, *.egg-info), nor do environments
// inside of it. A path where nothing is has a digest as well.
Result<std::string> digest_of_path(const std::string& path);

// path: absolute, of the spec's subject on this host (none: empty). folder: the project's, in which
// its tools run. commit: what a git spec's ref stands for at this moment.
Result<std::string> digest_of_inputs(const Spec& spec, const std::string& path,
                                     const std::string& folder, std::string_view commit);

// Whether pip or uv would build or install from a file or folder of this host.
Result<bool> installs_from_here(const Spec& spec, const std::string& path,
                                const std::string& folder);

}  // namespace lockstep::setup
