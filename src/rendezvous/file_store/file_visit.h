// One look at a file that processes share under flock(2): opened for it, and closed after it, as
// only an open makes a network file system ask its server anew. Nothing here waits for a lock.
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
  // Errc::invalid_input: it is no regular file.
  static Result<FileVisit> open(const std::string& path, Create create = Create::no);

  FileVisit(FileVisit&&) = default;
  FileVisit& operator=(FileVisit&&) = delete;
  ~FileVisit();  // lets go of the lock

  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };
  Identity identity() const { return identity_; }
  // As of the opening, or of the lock once there is one.
  std::uint64_t size() const { return size_; }

  // false: another process has it.
  Result<bool> try_lock(bool exclusive);
  // Up to `count` bytes; fewer at the end of the file.
  Result<std::string> read_at(std::uint64_t offset, std::size_t count) const;
  // Makes `bytes` the file's end, from `offset` on; on failure the end is at `offset`.
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
