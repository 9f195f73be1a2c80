// One visit to a file shared under flock(2). Each visit opens and closes the file, because only an
// open makes a network file system ask its server anew. No function waits for a lock.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::rendezvous::file_store {

class FileVisit {
 public:
  enum class Create { no, yes };
  // Errc::invalid_input: not a regular file.
  static Result<FileVisit> open(const std::string& path, Create create = Create::no);

  FileVisit(FileVisit&&) = default;
  FileVisit& operator=(FileVisit&&) = delete;
  ~FileVisit();  // releases the lock

  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };
  Identity identity() const { return identity_; }
  // Returns the size at the opening, or at the lock once taken.
  std::uint64_t size() const { return size_; }

  // Returns false if another process has the lock.
  Result<bool> try_lock(bool exclusive);
  // Reads up to `count` bytes; fewer at the end of the file.
  Result<std::string> read_at(std::uint64_t offset, std::size_t count) const;
  // Writes `bytes` from `offset` to the new end of the file. On failure the file ends at `offset`.
  Status write_end(std::uint64_t offset, std::string_view bytes);
  Status truncate(std::uint64_t size);

 private:
  explicit FileVisit(io::Fd fd) : fd_(std::move(fd)) {}
  Status look();

  io::Fd fd_;
  Identity identity_;
  std::uint64_t size_ = 0;
  bool locked_ = false;
};

}  // namespace lockstep::rendezvous::file_store
