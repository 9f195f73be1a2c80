// Where a tree lies on a host, and the record of it.
#pragma once

#include "base/error.h"
#include "sync/host_tree.h"
#include "sync/record.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::sync {

std::optional<std::string> real_path(const std::string& path);
bool lies_in(std::string_view path, std::string_view folder);

// Where the tree is to lie, not yet looked at.
Result<std::string> wanted_place(std::string destination, const std::string& home);
// Where it lies: not_found says that there is none.
Result<std::string> find_place(const std::string& destination, const std::string& home);

std::string record_path(const HostFolders& folders, const std::string& place);
// not_found, or corrupt where it is damaged or of another place.
Result<Record> read_record(const HostFolders& folders, const std::string& place);
// The folder for files of a place that are not whole yet, beside its record; "" where they can't be
// renamed into the place.
std::string drafts_for(const std::string& place, const std::string& record);

// already_exists: the place belongs to another one, and what to do.
Status check_owner(const Record& record, const Owner& owner, const std::string& place);

// Fails also where the place belongs to another one meanwhile.
Result<Record> read_own_record(const HostFolders& folders, const std::string& place,
                               const Owner& owner);

}  // namespace lockstep::sync
