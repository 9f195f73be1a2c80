// SQLite behind values: a database file with a schema version, statements, and no exceptions.
// Several processes may use one file at once.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace lockstep::db {

class Statement {
 public:
  // Parameters are numbered from 1.
  void bind(int parameter, std::string_view text);
  void bind(int parameter, std::int64_t number);
  void bind_null(int parameter);
  // Moves to the next row. Returns false if there is none.
  Result<bool> step();
  // Runs a statement without rows. The statement can then be run again with other values.
  Status run();

  std::string text(int column) const;  // columns are numbered from 0
  std::int64_t number(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement, const std::string& path);
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::string path_;  // for errors
};

class Database {
 public:
  // Opens the database. Makes the file (mode 0600) if needed, and brings its schema up to date:
  // migrations[i] leads from version i to i + 1. Fails with corrupt for a damaged file, and with
  // unavailable for a file of a newer version. Such files are never changed.
  static Result<Database> open(const std::string& path,
                               std::span<const std::string_view> migrations);
  // Returns an empty database in memory with the newest schema. It ends with this object.
  static Result<Database> open_in_memory(std::span<const std::string_view> migrations);

  Result<Statement> prepare(std::string_view sql) const;
  // Runs one or several statements without parameters.
  Status execute(const char* sql) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  explicit Database(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  static Result<Database> open_as(const std::string& path, int flags,
                                  std::span<const std::string_view> migrations);
  Status begin_log() const;
  Status migrate(std::span<const std::string_view> migrations) const;
  Result<std::int64_t> schema_version() const;

  std::unique_ptr<sqlite3, Close> handle_;
  std::string path_;
};

// A write transaction: BEGIN IMMEDIATE now, ROLLBACK at destruction unless committed.
class Transaction {
 public:
  static Result<Transaction> begin(const Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(const Database& database) : database_(&database) {}
  const Database* database_;
};

}  // namespace lockstep::db
