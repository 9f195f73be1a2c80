// Reading and writing of records.
#include "rendezvous/file_store/file_store_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace lockstep::rendezvous::file_store {
namespace {

// PyTorch's keys, without a leading slash.
constexpr std::array<std::string_view, 2> kOwnKeys = {"cleanup/", "refcount/"};

void put_u32(std::string& out, std::size_t value) {
  const auto number = static_cast<std::uint32_t>(value);
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof bytes);
}

// Removes a u32 from the front and returns it.
std::optional<std::size_t> get_u32(std::string_view& bytes) {
  std::uint32_t number = 0;
  if (bytes.size() < sizeof number) return std::nullopt;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

bool is_own_key(std::string_view start, std::size_t length) {
  return std::any_of(kOwnKeys.begin(), kOwnKeys.end(), [&](std::string_view own) {
    return own.size() == length && own.starts_with(start);
  });
}

}  // namespace

Status put_file_record(std::string& out, std::string_view key, std::string_view value,
                       const FileStoreLimits& limits) {
  // A record that our own reader refuses would end the store for all nodes.
  if (key.size() + 1 > limits.max_key_bytes)
    return fail(Errc::invalid_input, fmt::format("a key of {} bytes is too long", key.size()));
  if (value.size() > limits.max_value_bytes)
    return fail(Errc::invalid_input, fmt::format("a value of {} bytes is too long", value.size()));
  put_u32(out, key.size() + 1);
  out += '/';
  out += key;
  put_u32(out, value.size());
  out += value;
  return {};
}

Status FileStoreReader::feed(std::string_view bytes) {
  rest_ += bytes;
  std::string_view left = rest_;
  while (!left.empty()) {
    LOCKSTEP_TRY_ASSIGN(const std::size_t used, take(left));
    if (used == 0) break;
    left.remove_prefix(used);
    taken_ += used;
  }
  rest_.erase(0, rest_.size() - left.size());
  return {};
}

Result<std::size_t> FileStoreReader::take(std::string_view bytes) {
  const std::size_t before = bytes.size();
  const auto key_length = get_u32(bytes);
  if (!key_length) return 0;
  LOCKSTEP_TRY(check_key(bytes.substr(0, *key_length), *key_length));
  if (bytes.size() < *key_length) return 0;
  const std::string_view key = bytes.substr(0, *key_length);
  bytes.remove_prefix(*key_length);
  const auto value_length = get_u32(bytes);
  if (!value_length) return 0;
  // Refuse by the claimed length: waiting for the bytes could take for ever.
  if (*value_length > limits_.max_value_bytes)
    return corrupt(fmt::format("a value claims {} bytes", *value_length));
  if (bytes.size() < *value_length) return 0;
  LOCKSTEP_TRY(apply(key, bytes.substr(0, *value_length)));
  return before - bytes.size() + *value_length;
}

// start: the part of the key read so far.
Status FileStoreReader::check_key(std::string_view start, std::size_t length) const {
  if (length == 0 || length > limits_.max_key_bytes)
    return corrupt(fmt::format("a key claims {} bytes", length));
  if (start.starts_with('-')) {
    start.remove_prefix(1);
    if (--length == 0) return corrupt("a deleted key has no name");
  }
  // Another program's file shows by its first bytes.
  if (!start.empty() && start.front() != '/' && !is_own_key(start, length))
    return corrupt("a key does not begin with '/'");
  return {};
}

Status FileStoreReader::apply(std::string_view key, std::string_view value) {
  const bool erase = key.front() == '-';
  if (erase) key.remove_prefix(1);
  const auto at = values_.find(key);
  // The old pair no longer counts against the limit.
  if (at != values_.end()) total_bytes_ -= at->first.size() + at->second.size();
  if (erase) {
    if (at != values_.end()) values_.erase(at);
    return {};
  }
  total_bytes_ += key.size() + value.size();
  if (total_bytes_ > limits_.max_total_bytes) return corrupt("the file holds too much");
  if (at != values_.end()) {
    at->second = value;
    return {};
  }
  if (values_.size() == limits_.max_keys) return corrupt("the file holds too many keys");
  values_.emplace(key, value);
  return {};
}

const std::string* FileStoreReader::find(std::string_view key) const {
  const auto at = values_.find('/' + std::string(key));
  return at == values_.end() ? nullptr : &at->second;
}

Failure FileStoreReader::corrupt(std::string_view why) const {
  return fail(Errc::corrupt, fmt::format("not a FileStore record at byte {}: {}", taken_, why),
              "the file may belong to another program, or a writer was cut off; name a new file");
}

}  // namespace lockstep::rendezvous::file_store
