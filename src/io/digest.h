// SHA-256 over a list of parts, each with its length. So moving a byte from one part to the next
// changes the digest.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::io {

class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(std::string_view part);
  Status add_file(const std::string& path);  // adds the file's content, reading in chunks
  std::string hex();                         // 64 hex digits; call once, last

 private:
  friend Result<std::string> sha256_of_file(const std::string& path);

  Result<std::uint64_t> add_bytes_of(const std::string& path);

  struct Context;
  std::unique_ptr<Context> context_;
};

// Returns the digest of one part, in 64 hex digits.
std::string digest_of(std::string_view bytes);
// Returns the SHA-256 of the file's bytes alone, as sha256sum prints it.
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace lockstep::io
