// What a Python has for building extensions of PyTorch and for running them. Neither PyTorch nor
// DeepSpeed is imported for it: that takes seconds, and fails where one of them is broken.
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
  bool headers = false;      // it is there
  std::string pip = {};      // versions of packages; empty: not there
  std::string setuptools = {};
  std::string wheel = {};
  std::string torch = {};
  std::string torch_cuda = {};  // CUDA that PyTorch was built for; empty: none
  std::string torch_hip = {};
  std::string nccl = {};       // a version, or the path of its library; empty: not found
  std::string deepspeed = {};  // its version; empty: not installed
  // What DeepSpeed's ops were built for; empty: nothing says so.
  std::string deepspeed_torch = {};
  std::string deepspeed_cuda = {};
  std::vector<std::string> deepspeed_ops = {};  // that are in the package, ready to load
};

// Asks it. folder: where it runs.
Result<PythonFacts> ask_python(const std::string& python, const std::string& folder = "/");
// Its answer. Pure.
Result<PythonFacts> read_python_facts(const std::string& python, std::string_view json);

}  // namespace lockstep::setup
