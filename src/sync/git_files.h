// Lists the files that belong to a tree by git's own rules, with `git ls-files`.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

// Returns paths relative to the folder, unsorted, possibly with duplicates. The folder must lie in
// a repository. A repository inside the folder (a submodule) comes as one path. A tracked file that
// was deleted is listed, too. not_found: git is not installed. unavailable: git refuses the folder;
// the message says why. Runs and fetches nothing that the repository's settings name.
Result<std::vector<std::string>> git_files(const std::string& folder);

// Returns the folder that git would take as the repository's top, or "". Only looks for .git; does
// not run git.
std::string git_top_of(std::string_view folder);
bool is_git_top(const std::string& folder);

// Returns the folder with a top's repository: its .git, or the path in a .git file.
std::string git_folder_of(const std::string& top);

// Checks that a repository belongs to this user or to root, or that the user's own git settings
// (safe.directory) trust it. Otherwise returns denied with git's own message. top: a result of
// git_top_of().
Status check_git_owner(const std::string& top);

// The rest is pure.
std::vector<std::string> git_files_command(const std::string& folder);
std::vector<std::string> split_at_nul(std::string_view output);
// Returns true if git trusts files of `owner`. sudo_uid: SUDO_UID of the environment, "" without
// sudo; git trusts the user who called sudo, too.
bool is_trusted_owner(unsigned int owner, unsigned int user, std::string_view sudo_uid);

}  // namespace lockstep::sync
