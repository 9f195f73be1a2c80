// The command lines of the tools that carry out a step: pip, uv, conda. Pure.
#pragma once

#include "setup/spec.h"

#include <string>
#include <vector>

namespace lockstep::setup {

using Argv = std::vector<std::string>;

// The tools for installing packages into one environment.
struct Installer {
  std::string python;  // the environment's interpreter
  std::string pip;     // pip's folder in the environment's library
  std::string uv;      // path of uv; empty: use pip
};

// A spec's subject as found on this host.
struct Resolved {
  std::string path = {};    // absolute path of the spec's file or folder
  std::string commit = {};  // the commit that a git spec's ref stands for
  bool from_here = false;   // installs or builds from files of this host
};

// Returns the commands of a step, to be run in order. The first one that fails ends the step.
// Returns none for local and conda.
//
// A package from a repository, a wheel or a folder may change without a new version, and pip would
// then keep the old one. So such a package is first reinstalled alone, then installed with its
// dependencies.
std::vector<Argv> install_plan(const Spec& spec, const Resolved& resolved,
                               const Installer& installer);

// The tools for a virtual environment. `virtualenv`: path of the program; empty: use Python's own
// venv.
struct VenvMaker {
  std::string python;
  std::string uv;
  std::string virtualenv;
};
Argv venv_plan(const VenvMaker& maker, const std::string& prefix);

// The place of an environment for `conda env`: "-p" and a prefix, or "-n" and a name.
struct CondaPlace {
  std::string option;
  std::string value;
  bool exists = false;
};
Argv conda_plan(const std::string& conda, const CondaPlace& place, const std::string& file,
                const std::vector<std::string>& args);

}  // namespace lockstep::setup
