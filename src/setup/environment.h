// The environment of a project's commands on this host, where `lockstep install` put the project's
// packages. Recorded under projects/KEY/ in the state folder.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::codec {
class JsonFields;
}

namespace lockstep::setup {

struct Environment {
  enum class Kind {
    none,    // no installed package needs a Python
    venv,    // a virtual environment at `prefix`
    conda,   // a conda environment at `prefix`
    system,  // the interpreter's own packages
  };
  Kind kind = Kind::none;
  std::string prefix = {};
  std::string python = {};              // absolute path of the interpreter; Kind::none: empty
  std::vector<std::string> local = {};  // folders to put on PYTHONPATH

  bool operator==(const Environment&) const = default;
};

// The kind's name in records and JSON, and back. kind_of() returns nullopt for an unknown name.
std::string_view kind_name(Environment::Kind kind);
// The members of an environment, also inside another struct.
void fields(codec::JsonFields& io, Environment& environment);

// Returns the environment of the project at `folder`, or of the nearest project above it. nullopt:
// no install has recorded one. A damaged record is an error.
Result<std::optional<Environment>> find_environment(const std::string& folder);
// Records the environment of a project. folder: the project's top folder on this host.
Status keep_environment(const std::string& folder, const Environment& environment);

// Returns the variables ("NAME=value") that a command in the environment gets on top of `own`, the
// environment that the command would otherwise have. Pure.
std::vector<std::string> variables_of(const Environment& environment,
                                      const std::vector<std::string>& own);

// Combines find_environment() and variables_of() for a command that starts in `folder` (absolute).
// Returns no variables if no environment is recorded for its project.
Result<std::vector<std::string>> project_environment(const std::string& folder,
                                                     const std::vector<std::string>& own);

}  // namespace lockstep::setup
