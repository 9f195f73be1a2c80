// Finds the project around a folder: its root, its name on hosts, and the user's folder within the
// project.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>

namespace lockstep::project {

struct Project {
  std::string root;    // absolute, without links in it
  std::string name;    // base name of the root, without dots in front; ~/name on hosts
  std::string folder;  // the working folder, relative to the root; empty: the root itself
};

// Returns the project around a folder. given_root: a folder that the user asked for by name
// (relative to `folder`), taken without further checks. Without given_root, the root is git's top
// folder (only .git is looked for, git does not run), else the folder itself. invalid_input then
// for "/", the home and folders above the home, a repository of another user that git does not
// trust either, and a folder without a repository that everybody can write to.
Result<Project> find_project(const std::string& folder,
                             const std::optional<std::string>& given_root);

// Returns whether a folder is open to everybody. A folder of the user without a sticky bit does not
// count: mounts of Windows and macOS look like that. mode, owner: of the folder. Pure.
bool is_everybodys(unsigned int mode, unsigned int owner, unsigned int user);

// Returns the path relative to the root, "" for the root itself. path: relative to the working
// folder, or absolute. The path need not exist. invalid_input: the path leads out of the root.
Result<std::string> path_in_project(const Project& project, const std::string& path);

// Returns the path by which a job in `folder` on the hosts reaches a file of the synced project.
// path: of the file, relative to the root. folder, and the project's name: absolute or relative to
// the home there. nullopt: the path depends on the place of the home, which only the hosts know.
// Pure.
std::optional<std::string> path_from_folder(const Project& project, const std::string& path,
                                            const std::string& folder);

}  // namespace lockstep::project
