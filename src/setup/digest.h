// SHA-256 over parts: each is preceded by its length, so that moving a byte from one to the next
// gives another digest.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::setup {

class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(std::string_view part);
  Status add_file(const std::string& path);  // its bytes, without holding them all at once
  std::string hex();                         // 64 digits; nothing is added after that

 private:
  friend Result<std::string> sha256_of_file(const std::string& path);

  Result<std::uint64_t> add_bytes_of(const std::string& path);

  struct Context;
  std::unique_ptr<Context> context_;
};

std::string digest_of(std::string_view bytes);
// Of the file's bytes and nothing else, as sha256sum has it.
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace lockstep::setup
