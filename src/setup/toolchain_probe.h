// Finds what extensions would be built with on this machine.
#pragma once

#include "base/error.h"
#include "setup/python_facts.h"
#include "setup/toolchain.h"

#include <string>
#include <string_view>

namespace lockstep::setup {

// given: a path or a name in PATH; empty: the Python of the project in whose folder we are, else
// python3 in PATH. Errors say what is not there.
Result<std::string> choose_python(const std::string& given);

// The compiler is CXX, else c++ or g++, as PyTorch chooses it; nvcc is that of CUDA_HOME or
// CUDA_PATH, else the one in PATH, else that of /usr/local/cuda.
Toolchain probe_toolchain(const PythonFacts& python);

// "…g++ (Debian 12.2.0-14) 12.2.0\n…" -> 12.2. Pure.
std::optional<Release> gcc_release(std::string_view version_output);
// "…release 13.0, V13.0.88\n…" -> 13.0. Pure.
std::optional<Release> nvcc_release(std::string_view version_output);

}  // namespace lockstep::setup
