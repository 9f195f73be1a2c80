// The metadata and content of a wheel file, as read by a Python.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct WheelFile {
  std::string file = {};  // file name
  std::string name = {};  // name of the package
  std::string version = {};
  std::vector<std::string> modules = {};    // top-level modules to import
  std::vector<std::string> libraries = {};  // compiled modules in the wheel
  bool pure = false;                        // no compiled code, according to the wheel's metadata
  std::vector<std::string> ops = {};        // DeepSpeed's ops that are built
  bool knows_ops = false;                   // the wheel says which ops are built
};

// The error says why the file is not a wheel.
Result<WheelFile> read_wheel(const std::string& python, const std::string& path);
// Reads the Python's answer. Pure.
Result<WheelFile> read_wheel_answer(const std::string& path, std::string_view json);

}  // namespace lockstep::setup
