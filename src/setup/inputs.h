// The digest of all inputs of a step. A step is skipped only while its digest stays the same.
#pragma once

#include "base/error.h"
#include "setup/spec.h"

#include <string>
#include <string_view>

namespace lockstep::setup {

// Returns the digest of a file's content, or of a folder's files with names, execute bits and
// links. Skips what builds and runs leave behind (.git, __pycache__, *.pyc, *.egg-info) and
// environments inside the folder. A missing path has a digest, too.
Result<std::string> digest_of_path(const std::string& path);

// Returns the digest of a step. path: the spec's file or folder on this host, absolute; empty if
// the spec has none. folder: the project's folder, in which tools run. commit: what a git spec's
// ref stands for now.
Result<std::string> digest_of_inputs(const Spec& spec, const std::string& path,
                                     const std::string& folder, std::string_view commit);

// Returns true if pip or uv would build or install from a file or folder of this host.
Result<bool> installs_from_here(const Spec& spec, const std::string& path,
                                const std::string& folder);

}  // namespace lockstep::setup
