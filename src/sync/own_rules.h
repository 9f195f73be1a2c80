// Lists the files of a folder by git's ignore rules, without git.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

// Returns paths relative to the root, which must be absolute. Inside a repository the ignore files
// above the root count, too, and so do info/exclude and the user's own excludes file.
Result<std::vector<std::string>> files_by_own_rules(const std::string& root);

// Returns all files, without reading any ignore file.
Result<std::vector<std::string>> all_files(const std::string& root);

// Returns the text of an ignore file, or "". folder: an open descriptor.
std::string read_rules(int folder, const char* name);

// Returns core.excludesFile of a git configuration, or "". Pure.
std::string excludes_file_in(std::string_view config, const std::string& home);

}  // namespace lockstep::sync
