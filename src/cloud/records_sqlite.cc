// Keeps the journal's records in a SQLite file. The write-ahead log must be synced at every commit.
// SQLite does so by default, and open_records() asks for it once more.
#include "cloud/journal.h"
#include "db/database.h"

#include <array>
#include <utility>

namespace lockstep::cloud {
namespace {

// Never change the text of a released version. Add a new version instead.
constexpr std::array<std::string_view, 1> kRentalMigrations = {R"(
CREATE TABLE records (
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  open INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  json TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) STRICT;
CREATE INDEX open_records ON records (kind, at_ms) WHERE open = 1;
CREATE INDEX records_by_time ON records (kind, at_ms);
)"};

Result<std::vector<Records::Record>> rows_of(db::Statement& rows) {
  std::vector<Records::Record> records;
  while (true) {
    LOCKSTEP_TRY_ASSIGN(const bool row, rows.step());
    if (!row) return records;
    records.push_back({.kind = rows.text(0),
                       .id = rows.text(1),
                       .open = rows.number(2) != 0,
                       .at_ms = rows.number(3),
                       .json = rows.text(4)});
  }
}

class SqliteRecords : public Records {
 public:
  explicit SqliteRecords(db::Database database) : database_(std::move(database)) {}

  Status put(const Record& record) override {
    return write("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)", record);
  }

  Status add(const Record& record) override {
    return write("INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?)", record);
  }

  Status change(const Record& record) override {
    return write("UPDATE records SET open = ?3, at_ms = ?4, json = ?5 WHERE kind = ?1 AND id = ?2",
                 record);
  }

  Status drop(const std::string& kind, const std::string& id) override {
    LOCKSTEP_TRY_ASSIGN(db::Statement drop,
                        database_.prepare("DELETE FROM records WHERE kind = ? AND id = ?"));
    drop.bind(1, kind);
    drop.bind(2, id);
    return drop.run();
  }

  // Names the index: otherwise SQLite's planner walks through all closed records.
  Result<std::vector<Record>> open_ones(const std::string& kind) override {
    LOCKSTEP_TRY_ASSIGN(db::Statement rows,
                        database_.prepare("SELECT kind, id, open, at_ms, json FROM records "
                                          "INDEXED BY open_records "
                                          "WHERE kind = ? AND open = 1 ORDER BY at_ms, id"));
    rows.bind(1, kind);
    return rows_of(rows);
  }

  Result<std::vector<Record>> since(const std::string& kind, std::int64_t ms) override {
    LOCKSTEP_TRY_ASSIGN(db::Statement rows,
                        database_.prepare("SELECT kind, id, open, at_ms, json FROM records "
                                          "WHERE kind = ? AND at_ms >= ? ORDER BY at_ms, id"));
    rows.bind(1, kind);
    rows.bind(2, ms);
    return rows_of(rows);
  }

  Result<std::optional<Record>> newest(const std::string& kind, const std::string& part) override {
    LOCKSTEP_TRY_ASSIGN(
        db::Statement rows,
        database_.prepare("SELECT kind, id, open, at_ms, json FROM records WHERE kind = ? "
                          "AND instr(json, ?) > 0 ORDER BY at_ms DESC LIMIT 1"));
    rows.bind(1, kind);
    rows.bind(2, part);
    LOCKSTEP_TRY_ASSIGN(auto found, rows_of(rows));
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  }

 private:
  Status write(std::string_view sql, const Record& record) const {
    LOCKSTEP_TRY_ASSIGN(db::Statement put, database_.prepare(sql));
    put.bind(1, record.kind);
    put.bind(2, record.id);
    put.bind(3, std::int64_t{record.open ? 1 : 0});
    put.bind(4, record.at_ms);
    put.bind(5, record.json);
    return put.run();
  }

  db::Database database_;
};

}  // namespace

Result<std::unique_ptr<Records>> open_records(const std::string& path) {
  LOCKSTEP_TRY_ASSIGN(db::Database database, db::Database::open(path, kRentalMigrations));
  LOCKSTEP_TRY(database.execute("PRAGMA synchronous = FULL"));
  return std::make_unique<SqliteRecords>(std::move(database));
}

}  // namespace lockstep::cloud
