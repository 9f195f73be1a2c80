// Finds the project around a folder: its root, its name on hosts, and the user's folder within the
// project.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>

namespace lockstep::project {

struct Project {
  std::string root;    // absolute, without links in it
  std::string name;    // on hosts it lies at ~/name: the root's base name, without dots before it
  std::string folder;  // the working folder, relative to the root; empty: the root itself
};

// given_root: what the user asked for by name (relative to the folder), taken as it is. Else the
// root is git's top folder, for which only .git is looked for, else the folder itself. Refused are
// then "/", the home and what lies above the home, a repository of another user that git does not
// trust either, and a folder without a repository that everybody can write to.
Result<Project> find_project(const std::string& folder,
                             const std::optional<std::string>& given_root);

// Returns whether other users can put files into a folder that this user does not own. Pure.
bool is_everybodys(unsigned int mode, unsigned int owner, unsigned int user);

// The place of a path below the root: "" for the root itself. path: relative to the working folder,
// or absolute; it need not exist.
Result<std::string> path_in_project(const Project& project, const std::string& path);

}  // namespace lockstep::project
