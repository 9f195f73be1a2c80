// Something about this node that stops a job or a build, or may, and the cure.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::setup {

struct Finding {
  bool trouble = false;   // it stops something, sooner or later; else it may
  std::string_view what;  // a word for programs: "gcc-too-new"
  std::string text;
  std::string cure;
};

}  // namespace lockstep::setup
