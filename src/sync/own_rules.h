// The files of a folder by git's ignore rules, without git.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

// Paths relative to the root, which is absolute. Inside of a repository the ignore files above the
// root count too, as do its info/exclude and the user's own excludes file.
Result<std::vector<std::string>> files_by_own_rules(const std::string& root);

// All of them: no ignore file is looked at.
Result<std::vector<std::string>> all_files(const std::string& root);

// An ignore file's text; "" where there is none. folder: an open descriptor.
std::string read_rules(int folder, const char* name);

// core.excludesFile of a git configuration file's text; "" if it names none. Pure.
std::string excludes_file_in(std::string_view config, const std::string& home);

}  // namespace lockstep::sync
