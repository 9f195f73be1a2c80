// A Python's facts for building and running extensions of PyTorch. The probe imports neither
// PyTorch nor DeepSpeed: an import takes seconds, and fails if the package is broken.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct PythonFacts {
  std::string python = {};   // absolute
  std::string version = {};  // "3.11.2"
  std::string tag = {};      // "cpython-311-x86_64-linux-gnu"
  std::string libc = {};     // "glibc 2.36"
  std::string include = {};  // where Python.h would be
  bool headers = false;      // Python.h exists
  std::string pip = {};      // versions of packages; empty: not installed
  std::string setuptools = {};
  std::string wheel = {};
  std::string torch = {};
  std::string torch_cuda = {};  // the CUDA that PyTorch was built for; empty: none
  std::string torch_hip = {};
  std::string nccl = {};       // a version, or the path of the library; empty: not found
  std::string deepspeed = {};  // version; empty: not installed
  // The versions that DeepSpeed's ops were built for; empty: not recorded.
  std::string deepspeed_torch = {};
  std::string deepspeed_cuda = {};
  std::vector<std::string> deepspeed_ops = {};  // ops that are compiled into the package
};

// Runs the interpreter in `folder` and returns its facts.
Result<PythonFacts> ask_python(const std::string& python, const std::string& folder = "/");
// Reads the probe's answer. Pure.
Result<PythonFacts> read_python_facts(const std::string& python, std::string_view json);

}  // namespace lockstep::setup
