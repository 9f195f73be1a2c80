// Where a tree lies on a host, and the record of what was sent there.
#pragma once

#include "base/error.h"
#include "sync/host_tree.h"
#include "sync/record.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::sync {

// Returns the path without links, or nullopt if it does not exist (errno says why).
std::optional<std::string> real_path(const std::string& path);
// Returns true if path is the folder or lies inside. Compares text only.
bool lies_in(std::string_view path, std::string_view folder);

// Returns the absolute path for a destination ("dir", "~/dir", "/dir") without looking at the disk.
// Refuses the home, the root, "." and "..".
Result<std::string> wanted_place(std::string destination, const std::string& home);
// Returns the real path of an existing destination. not_found: nothing is there.
Result<std::string> find_place(const std::string& destination, const std::string& home);

std::string record_path(const HostFolders& folders, const std::string& place);
// not_found: no record. corrupt: the record is damaged or belongs to another place.
Result<Record> read_record(const HostFolders& folders, const std::string& place);
// Returns the folder, beside the record, for files in transfer. Returns "" if that folder is on
// another file system than the place, because rename() cannot cross file systems.
std::string drafts_for(const std::string& place, const std::string& record);

// already_exists: the place belongs to another owner. The hint says what to do.
Status check_owner(const Record& record, const Owner& owner, const std::string& place);

// Reads the record, and fails if another owner has taken the place over since.
Result<Record> read_own_record(const HostFolders& folders, const std::string& place,
                               const Owner& owner);

}  // namespace lockstep::sync
