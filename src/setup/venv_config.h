// The pyvenv.cfg of a virtual environment. Pure.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::setup {

// Returns true if the environment also imports packages of its base Python.
bool sees_base_packages(std::string_view config);

// Returns the same settings with include-system-site-packages = true.
std::string with_base_packages(std::string_view config);

}  // namespace lockstep::setup
