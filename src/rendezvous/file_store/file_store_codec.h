// The file of PyTorch's FileStore, pure: records one after the other, a later one of a key counts.
// A record is u32 length, key, u32 length, value; the machine's own byte order. Keys that programs
// use begin with "/", PyTorch's own are "cleanup/" and "refcount/", and "-" before any of them
// deletes it.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lockstep::rendezvous::file_store {

struct FileStoreLimits {
  std::size_t max_key_bytes = 64U << 10;
  std::size_t max_value_bytes = 64U << 20;
  std::size_t max_keys = 1U << 20;           // present at once
  std::size_t max_total_bytes = 256U << 20;  // of keys and values present at once
};

// "/key" in the file; appends its record to `out`. Fails for what no reader of ours would take.
Status put_file_record(std::string& out, std::string_view key, std::string_view value,
                       const FileStoreLimits& limits = {});

// The key space that a file's bytes amount to. Fed in order with any pieces, it takes whole
// records; memory follows the bytes fed, never a length that is only claimed.
class FileStoreReader {
 public:
  explicit FileStoreReader(FileStoreLimits limits = {}) : limits_(limits) {}

  // Errc::corrupt: this is no such file, or a damaged one; nothing can be read after that place.
  Status feed(std::string_view bytes);
  // Forgets a record that is not whole: the next bytes fed are those at taken().
  void drop_rest() { rest_.clear(); }

  std::uint64_t taken() const { return taken_; }  // bytes of the file in whole records
  std::size_t rest() const { return rest_.size(); }

  // Keys without the "/".
  const std::string* find(std::string_view key) const;
  std::size_t size() const { return values_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  // 0: not whole yet.
  Result<std::size_t> take(std::string_view bytes);
  Status check_key(std::string_view start, std::size_t length) const;
  Status apply(std::string_view key, std::string_view value);
  Failure corrupt(std::string_view why) const;

  FileStoreLimits limits_;
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> values_;  // by key in file
  std::size_t total_bytes_ = 0;
  std::uint64_t taken_ = 0;
  std::string rest_;  // begins with the first record that is not whole
};

}  // namespace lockstep::rendezvous::file_store
