// What a Python on this host is, and which tools and packages it has.
#pragma once

#include "base/error.h"

#include <string>
#include <vector>

namespace lockstep::setup {

struct Interpreter {
  std::string python;                   // absolute
  std::string version = {};             // "3.11.2"
  std::string pip = {};                 // pip's folder; empty: no pip
  bool makes_venvs = false;             // by Python's own venv module
  bool has_virtualenv = false;          // the package virtualenv is installed
  bool has_torch = false;               // `import torch` finds it
  std::vector<std::string> sites = {};  // folders that packages are installed into
  // For a virtual environment: the folders that it imports packages from. Empty otherwise.
  std::vector<std::string> venv_sites = {};
};

// Returns a digest that changes when the interpreter does: its path, its program, or the settings
// in pyvenv.cfg.
std::string identity_of(const std::string& python);

// Runs the interpreter and returns its facts. kept: a file that caches the answer until the
// interpreter changes; empty: no cache.
Result<Interpreter> ask_interpreter(const std::string& python, const std::string& kept);

// Returns a digest that changes when any tool adds, removes or reinstalls a package.
std::string state_of_packages(const Interpreter& interpreter, const std::string& prefix);

}  // namespace lockstep::setup
