// Reads SRC[:DST] of a command line: a project on this machine and its place on hosts.
#pragma once

#include "base/error.h"
#include "project/project.h"

#include <optional>
#include <string>

namespace lockstep::cli {

struct ProjectWords {
  std::optional<std::string> source = {};
  std::optional<std::string> destination = {};
};
// Splits "SRC", "SRC:DST" or ":DST". Checks the file system: if the whole text is an existing path
// with a colon, the text is SRC. Errors: invalid_input (nothing behind the colon).
Result<ProjectWords> project_words(const std::string& text);

// Returns the project that the words name, else the project around `folder`. The project's name is
// its place on hosts: a path relative to the home there, or absolute.
Result<project::Project> project_of(const std::string& folder,
                                    const std::optional<std::string>& words);

}  // namespace lockstep::cli
