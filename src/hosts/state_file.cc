#include "hosts/state_file.h"

#include "io/own_folders.h"

#include <array>
#include <string_view>

namespace lockstep::hosts {
namespace {

// Never change the text of a released version: databases of that version exist. Append a migration
// instead. The number of migrations is the version of the schema.
constexpr std::array<std::string_view, 2> kMigrations = {R"(
CREATE TABLE clusters (
  name TEXT PRIMARY KEY,
  source TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE nodes (
  cluster TEXT NOT NULL REFERENCES clusters (name) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  host TEXT NOT NULL,
  user TEXT,
  port INTEGER,
  key_path TEXT NOT NULL,
  jump TEXT NOT NULL,
  slots INTEGER,
  PRIMARY KEY (cluster, number)
) STRICT;
)",
                                                         R"(
CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  place TEXT NOT NULL,
  command TEXT NOT NULL,
  nodes TEXT NOT NULL,
  plan TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  stage TEXT NOT NULL,
  code INTEGER NOT NULL,
  ended_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_created ON jobs (created_ms);
)"};

}  // namespace

Result<db::Database> open_state(const std::string& folder) {
  if (auto made = io::make_folders(folder); !made) {
    made.error().hint = "clusters and jobs are kept in XDG_STATE_HOME, or below HOME";
    return tl::make_unexpected(std::move(made).error());
  }
  return db::Database::open(folder + "/state.db", kMigrations);
}

Result<db::Database> open_state_to_look(const std::string& folder) {
  if (!io::make_folders(folder)) return db::Database::open_in_memory(kMigrations);
  return open_state(folder);
}

}  // namespace lockstep::hosts
