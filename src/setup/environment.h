// What the commands of a project on this host run in: the environment that `lockstep install` has
// put its packages into. It is kept under projects/KEY/ in the state folder.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct Environment {
  enum class Kind {
    none,    // nothing was installed that needs a Python
    venv,    // a virtual environment at `prefix`
    conda,   // a conda environment at `prefix`
    system,  // the packages of the interpreter itself
  };
  Kind kind = Kind::none;
  std::string prefix = {};
  std::string python = {};              // the interpreter, absolute; Kind::none: empty
  std::vector<std::string> local = {};  // folders that are on PYTHONPATH

  bool operator==(const Environment&) const = default;
};

std::string_view kind_name(Environment::Kind kind);
std::optional<Environment::Kind> kind_of(std::string_view name);

// What there is for the project whose top folder on this host is `folder`, or whose folder lies
// somewhere above it. nullopt: nothing was installed for it.
Result<std::optional<Environment>> find_environment(const std::string& folder);
// folder: the project's top folder on this host.
Status keep_environment(const std::string& folder, const Environment& environment);

// "NAME=value": what a command in that environment gets on top of `own`, the environment that it
// would have without. Pure.
std::vector<std::string> variables_of(const Environment& environment,
                                      const std::vector<std::string>& own);

// Both together, for whoever starts a command in `folder` (absolute). Nothing where nothing was
// installed for its project.
Result<std::vector<std::string>> project_environment(const std::string& folder,
                                                     const std::vector<std::string>& own);

}  // namespace lockstep::setup
