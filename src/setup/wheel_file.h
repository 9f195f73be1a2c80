// What a wheel file is and has, as its Python reads it.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct WheelFile {
  std::string file = {};  // its name
  std::string name = {};  // of the package
  std::string version = {};
  std::vector<std::string> modules = {};    // top-level, to be imported
  std::vector<std::string> libraries = {};  // compiled modules in it
  bool pure = false;                        // it says that it has none
  std::vector<std::string> ops = {};        // of DeepSpeed's that are built
  bool knows_ops = false;                   // it says which are
};

// Errors say why it is no wheel.
Result<WheelFile> read_wheel(const std::string& python, const std::string& path);
// Its Python's answer. Pure.
Result<WheelFile> read_wheel_answer(const std::string& path, std::string_view json);

}  // namespace lockstep::setup
