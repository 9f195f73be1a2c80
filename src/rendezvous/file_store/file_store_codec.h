// The file format of PyTorch's FileStore. Pure. The file is a sequence of records; the last record
// of a key counts. A record is u32 length, key, u32 length, value, in the machine's byte order.
// Keys of programs begin with "/". PyTorch's own keys are "cleanup/" and "refcount/". A "-" before
// any key deletes the key.
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
  std::size_t max_keys = 1U << 20;           // keys present at once
  std::size_t max_total_bytes = 256U << 20;  // bytes of keys and values present at once
};

// Appends the record of "/key" to `out`. Fails if our reader would refuse the record.
Status put_file_record(std::string& out, std::string_view key, std::string_view value,
                       const FileStoreLimits& limits = {});

// The keys and values of a file. Takes the file's bytes in order, in pieces of any size, and
// applies whole records. Memory follows the bytes fed, never a claimed length.
class FileStoreReader {
 public:
  explicit FileStoreReader(FileStoreLimits limits = {}) : limits_(limits) {}

  // Errc::corrupt: the file has another format or is damaged. Nothing can be read after that place.
  Status feed(std::string_view bytes);
  // Forgets an incomplete record: the next bytes fed are those at taken().
  void drop_rest() { rest_.clear(); }

  std::uint64_t taken() const { return taken_; }  // bytes of the file in whole records
  std::size_t rest() const { return rest_.size(); }

  // Returns the value of a key without "/"; nullptr: missing.
  const std::string* find(std::string_view key) const;
  std::size_t size() const { return values_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  // Returns the bytes of one record; 0: incomplete.
  Result<std::size_t> take(std::string_view bytes);
  Status check_key(std::string_view start, std::size_t length) const;
  Status apply(std::string_view key, std::string_view value);
  Failure corrupt(std::string_view why) const;

  FileStoreLimits limits_;
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>>
      values_;  // by key in the file
  std::size_t total_bytes_ = 0;
  std::uint64_t taken_ = 0;
  std::string rest_;  // starts with the first incomplete record
};

}  // namespace lockstep::rendezvous::file_store
