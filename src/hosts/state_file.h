// Opens state.db, the database of this user's clients, and upgrades its tables.
#pragma once

#include "base/error.h"
#include "db/database.h"

#include <string>

namespace lockstep::hosts {

// folder: where state.db is; it is made for this user alone.
Result<db::Database> open_state(const std::string& folder);

}  // namespace lockstep::hosts
