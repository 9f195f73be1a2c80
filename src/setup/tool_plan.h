// The command lines of the tools that carry a step out: pip, uv, conda. Pure.
#pragma once

#include "setup/spec.h"

#include <string>
#include <vector>

namespace lockstep::setup {

using Argv = std::vector<std::string>;

// What installs packages into one environment.
struct Installer {
  std::string python;  // of the environment
  std::string pip;     // pip's folder in its library
  std::string uv;      // where this is, pip is not asked
};

// What a step turns out to be on this host.
struct Resolved {
  std::string path = {};    // absolute, of the spec's file or folder
  std::string commit = {};  // that a git spec's ref stands for
  bool from_here = false;   // files of this host are installed or built, not only packages
};

// One command after the other; the first that fails ends the step. Not for local and conda.
//
// Same version does not mean same content for what comes from a repository, a wheel or a folder:
// such a package is first put in place again by itself, then what it depends on is seen to.
std::vector<Argv> install_plan(const Spec& spec, const Resolved& resolved,
                               const Installer& installer);

// A virtual environment at `prefix`. `virtualenv`: its program, or empty for Python's own venv.
struct VenvMaker {
  std::string python;
  std::string uv;
  std::string virtualenv;
};
Argv venv_plan(const VenvMaker& maker, const std::string& prefix);

// The environment of a file, at a prefix or under a name ("-p"/"-n"), made or brought up to date.
struct CondaPlace {
  std::string option;
  std::string value;
  bool exists = false;
};
Argv conda_plan(const std::string& conda, const CondaPlace& place, const std::string& file,
                const std::vector<std::string>& args);

}  // namespace lockstep::setup
