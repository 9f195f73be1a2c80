// A Python on this host, with its tools and packages.
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
  // For a virtual environment: its folders of packages. Otherwise empty.
  std::vector<std::string> venv_sites = {};
};

// Returns a digest of the interpreter: its path, its program and the settings in pyvenv.cfg.
std::string identity_of(const std::string& python);

// Runs the interpreter and returns its facts. kept: a cache file, valid until the interpreter
// changes; empty: no cache.
Result<Interpreter> ask_interpreter(const std::string& python, const std::string& kept);

// Returns a digest that changes when any tool adds, removes or reinstalls a package.
std::string state_of_packages(const Interpreter& interpreter, const std::string& prefix);

}  // namespace lockstep::setup
