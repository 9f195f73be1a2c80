// Finds the tools that extensions would be built with on this machine.
#pragma once

#include "base/error.h"
#include "setup/python_facts.h"
#include "setup/toolchain.h"

#include <string>
#include <string_view>

namespace lockstep::setup {

// Returns the path of the interpreter. given: a path, or a name in PATH; empty: the Python of the
// project in whose folder this process runs, else python3 in PATH. The error says which Python is
// missing.
Result<std::string> choose_python(const std::string& given);

// Finds compiler and toolkit by PyTorch's own rules. The compiler is CXX, else c++ or g++. nvcc is
// the one of CUDA_HOME or CUDA_PATH, else in PATH, else in /usr/local/cuda.
Toolchain probe_toolchain(const PythonFacts& python);

// Reads "…g++ (Debian 12.2.0-14) 12.2.0\n…" as 12.2. Pure.
std::optional<Release> gcc_release(std::string_view version_output);
// Reads "…release 13.0, V13.0.88\n…" as 13.0. Pure.
std::optional<Release> nvcc_release(std::string_view version_output);

}  // namespace lockstep::setup
