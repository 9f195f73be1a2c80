// Git's own idea of which files belong to a tree, by `git ls-files`.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

// Paths relative to the folder, which lies in a repository, in no order and perhaps twice. What is
// a repository of its own (a submodule) comes as one path. A tracked file that is deleted is there.
// not_found: there is no git; unavailable: git does not take the folder, and why. Nothing that the
// repository names is run or fetched.
Result<std::vector<std::string>> git_files(const std::string& folder);

// The folder that git would take for the repository's top; "": none. Only looks for .git.
std::string git_top_of(std::string_view folder);
bool is_git_top(const std::string& folder);

// The folder that holds a top's repository: its .git, or the place that a .git file names.
std::string git_folder_of(const std::string& top);

// Checks that a repository belongs to this user or to root, or that the user's own git settings
// (safe.directory) trust it. denied: git's own words. top: as git_top_of() found it.
Status check_git_owner(const std::string& top);

// Pure.
std::vector<std::string> git_files_command(const std::string& folder);
std::vector<std::string> split_at_nul(std::string_view output);
// sudo_uid: what sudo says of the user who called it, "" without sudo. Git trusts that user, too.
bool is_trusted_owner(unsigned int owner, unsigned int user, std::string_view sudo_uid);

}  // namespace lockstep::sync
