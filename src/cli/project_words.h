// SRC[:DST] of a command line: a project here and its place on hosts.
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
// "SRC", "SRC:DST" or ":DST". A folder whose name has a colon is meant as it is. Looks at folders.
Result<ProjectWords> project_words(const std::string& text);

// The project that the words name, else the one around `folder`. Its name is the place on hosts:
// relative to the home there, or absolute.
Result<project::Project> project_of(const std::string& folder,
                                    const std::optional<std::string>& words);

}  // namespace lockstep::cli
