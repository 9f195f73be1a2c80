// A problem of this node, certain or possible, for a job or a build, with its cure.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::setup {

struct Finding {
  bool trouble = false;   // true: something will fail; false: something may
  std::string_view what;  // a word for programs, such as "gcc-too-new"
  std::string text;
  std::string cure;
};

}  // namespace lockstep::setup
