// Opens, migrates and queries SQLite files.
#include "db/database.h"

#include "io/fd.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

namespace lockstep::db {
namespace {

// Longest wait for another process's lock.
constexpr int kBusyMs = 10000;
constexpr int kBusyPauseMs = 20;

// A full disk also shows as other errors, for example when a mapped file cannot grow.
bool has_no_room(const std::string& path) {
  constexpr std::uint64_t kLeast = 64UL << 10;
  struct statvfs disk {};
  return statvfs(path.c_str(), &disk) == 0 && disk.f_bavail * disk.f_frsize < kLeast;
}

Failure failure(sqlite3* handle, const std::string& path) {
  const int code = handle == nullptr ? SQLITE_NOMEM : sqlite3_errcode(handle);
  const std::string what = handle == nullptr ? "out of memory" : sqlite3_errmsg(handle);
  const int kind = code & 0xFF;
  if (kind == SQLITE_FULL || (kind == SQLITE_IOERR && has_no_room(path)))
    return fail(Errc::exhausted, fmt::format("{}: the disk is full ({})", path, what),
                "free space on this disk");
  switch (kind) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return fail(Errc::corrupt, fmt::format("{} is damaged: {}", path, what),
                  "move the file away to start afresh; the damaged file is unchanged");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fail(Errc::timeout, fmt::format("{}: locked by another lockstep for too long", path));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return fail(Errc::denied, fmt::format("{}: {}", path, what));
    default:
      return fail(Errc::internal, fmt::format("{}: {}", path, what));
  }
}

// Creates the file, since SQLite would use the user's umask. An existing file is not opened here:
// closing any descriptor of a file drops all locks of this process on it, including those of
// another Database. Another process could then remove that database's log as unused, and later
// writes to it would be lost.
Status make_file(const std::string& path) {
  if (io::Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600))) return {};
  if (errno != EEXIST) return fail_sys(path, errno);
  if (faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0)
    return fail_sys(path, errno);
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return fail_sys(path, EISDIR);
  return {};
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement::Statement(sqlite3_stmt* statement, const std::string& path)
    : statement_(statement), path_(path) {}

void Statement::bind(int parameter, std::string_view text) {
  // SQLITE_TRANSIENT makes SQLite copy the text, which may be a temporary of the caller.
  LOCKSTEP_CHECK(sqlite3_bind_text(statement_.get(), parameter, text.data(),
                                   static_cast<int>(text.size()), SQLITE_TRANSIENT) == SQLITE_OK);
}

void Statement::bind(int parameter, std::int64_t number) {
  LOCKSTEP_CHECK(sqlite3_bind_int64(statement_.get(), parameter, number) == SQLITE_OK);
}

void Statement::bind_null(int parameter) {
  LOCKSTEP_CHECK(sqlite3_bind_null(statement_.get(), parameter) == SQLITE_OK);
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return failure(sqlite3_db_handle(statement_.get()), path_);
}

Status Statement::run() {
  const auto stepped = step();
  // Reset at once, also after an error: an unfinished statement keeps its lock.
  sqlite3_reset(statement_.get());
  if (!stepped) return Failure(stepped.error());
  return {};
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return bytes == nullptr
             ? std::string()
             : std::string(
                   bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

std::int64_t Statement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

void Database::Close::operator()(sqlite3* handle) const {
  sqlite3_close(handle);
}

Result<Database> Database::open(const std::string& path,
                                std::span<const std::string_view> migrations) {
  LOCKSTEP_TRY(make_file(path));
  return open_as(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, migrations);
}

Result<Database> Database::open_in_memory(std::span<const std::string_view> migrations) {
  return open_as(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, migrations);
}

Result<Database> Database::open_as(const std::string& path, int flags,
                                   std::span<const std::string_view> migrations) {
  sqlite3* handle = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  Database database(handle, path);
  if (opened != SQLITE_OK) return failure(handle, path);
  // Applies to every statement below.
  sqlite3_busy_timeout(handle, kBusyMs);
  // Refuses SQL that would corrupt the file on purpose.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // SQLite ignores foreign keys unless each connection asks for them. ON DELETE CASCADE depends on
  // this.
  LOCKSTEP_TRY(database.execute("PRAGMA foreign_keys = ON"));
  LOCKSTEP_TRY(database.migrate(migrations));
  return database;
}

Result<std::int64_t> Database::schema_version() const {
  LOCKSTEP_TRY_ASSIGN(Statement statement, prepare("PRAGMA user_version"));
  LOCKSTEP_TRY_ASSIGN(const bool row, statement.step());
  return row ? statement.number(0) : 0;
}

// SQLite ignores the busy timeout in parts of this step, so retry here.
Status Database::begin_log() const {
  Status begun;
  for (int waited = 0; waited < kBusyMs; waited += kBusyPauseMs) {
    // With a write-ahead log, readers and one writer work at the same time.
    begun = execute("PRAGMA journal_mode = WAL");
    if (begun || begun.error().code != Errc::timeout) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(kBusyPauseMs));
  }
  return begun;
}

Status Database::migrate(std::span<const std::string_view> migrations) const {
  const auto newest = static_cast<std::int64_t>(migrations.size());
  LOCKSTEP_TRY_ASSIGN(std::int64_t version, schema_version());
  if (version < newest) {
    LOCKSTEP_TRY(begin_log());
    LOCKSTEP_TRY_ASSIGN(Transaction transaction, Transaction::begin(*this));
    // Another process may have migrated the file in the meantime.
    LOCKSTEP_TRY_ASSIGN(version, schema_version());
    for (; version < newest; ++version)
      LOCKSTEP_TRY(execute(std::string(migrations[static_cast<std::size_t>(version)]).c_str()));
    LOCKSTEP_TRY(execute(fmt::format("PRAGMA user_version = {}", newest).c_str()));
    LOCKSTEP_TRY(transaction.commit());
  }
  if (version > newest)
    return fail(Errc::unavailable,
                fmt::format("{} was written by a newer lockstep (schema {}, this version knows {})",
                            path_, version, newest),
                "use the newer version; the file is unchanged");
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement,
                         nullptr) != SQLITE_OK)
    return failure(handle_.get(), path_);
  return Statement(statement, path_);
}

Status Database::execute(const char* sql) const {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return failure(handle_.get(), path_);
  return {};
}

Result<Transaction> Transaction::begin(const Database& database) {
  // IMMEDIATE takes the write lock now: a transaction that reads first and then writes could fail
  // in the middle.
  LOCKSTEP_TRY(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  if (database_ != nullptr) (void)database_->execute("ROLLBACK");
}

Status Transaction::commit() {
  LOCKSTEP_TRY(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace lockstep::db
