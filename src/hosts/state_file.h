// Opens state.db, the database of this user's clients (clusters and jobs), and upgrades its tables.
#pragma once

#include "base/error.h"
#include "db/database.h"

#include <string>

namespace lockstep::hosts {

// Returns the open database. folder: the folder of state.db, made for this user alone if missing.
// corrupt: a damaged file. unavailable: a file of a newer version.
Result<db::Database> open_state(const std::string& folder);
// The same for commands that only look: an empty database in memory if the folder is missing and
// cannot be made. Containers often have no home that can be written.
Result<db::Database> open_state_to_look(const std::string& folder);

}  // namespace lockstep::hosts
