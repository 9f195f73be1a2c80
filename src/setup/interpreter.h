// What a Python on this host is and what it has.
#pragma once

#include "base/error.h"

#include <string>
#include <vector>

namespace lockstep::setup {

struct Interpreter {
  std::string python;                   // absolute
  std::string version = {};             // "3.11.2"
  std::string pip = {};                 // pip's folder; empty: it has none
  bool makes_venvs = false;             // by its own venv
  bool has_virtualenv = false;          // the package
  bool has_torch = false;               // `import torch` finds it
  std::vector<std::string> sites = {};  // folders where packages are put
  // Of a virtual environment: the folders that it imports packages from. Else empty.
  std::vector<std::string> venv_sites = {};
};

// Changes when the interpreter does: path, program, and the environment's own settings.
std::string identity_of(const std::string& python);

// Asks it. kept: a file where the answer stays until the interpreter changes; empty: none.
Result<Interpreter> ask_interpreter(const std::string& python, const std::string& kept);

// Changes when packages come, go or are put in place again, whoever does it.
std::string state_of_packages(const Interpreter& interpreter, const std::string& prefix);

}  // namespace lockstep::setup
