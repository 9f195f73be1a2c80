// The settings of --rdzv-conf as typed values, read once by the keys of the chosen backend.
#pragma once

#include "base/error.h"
#include "codec/rdzv_conf.h"
#include "launch/facts.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::launch {

// The longest accepted time. Clocks count nanoseconds in 64 bits, and sums of longer times would
// overflow.
inline constexpr std::int64_t kYearInSeconds = 365LL * 24 * 3600;

// A setting that a backend reads.
struct ConfKey {
  enum class Type {
    number,  // a whole number from `least` to `most`
    flag,
    choice,  // one of two words, in any case
    text,
    file,    // path of an existing file
    secret,  // path of a file private to the owner; the value is the content
  };
  std::string_view name;
  Type type = Type::number;
  std::int64_t otherwise = 0;  // a number's default
  std::int64_t least = 1;
  std::int64_t most = kYearInSeconds;
  std::array<std::string_view, 2> choices = {};  // the first is the default
  std::string_view text_otherwise = {};          // a text's default
};

class ConfValues {
 public:
  // Reads and checks the values of `keys`. Ignores other keys, as torchrun does. Errors:
  // invalid_input, or those of reading a file.
  static Result<ConfValues> read(std::span<const ConfKey> keys, const codec::RdzvConf& conf,
                                 const Facts& facts);

  // Returns whether the user gave the key; false for a key unknown to the backend.
  bool given(std::string_view key) const;
  // Return the value or the default. Abort on a key unknown to the backend, which is a bug.
  std::int64_t number(std::string_view key) const;
  std::chrono::seconds seconds(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;  // nullopt: not given
  const std::string& text(std::string_view key) const;

 private:
  struct Value {
    std::int64_t number = 0;
    std::string text;
    bool given = false;
  };
  static Result<Value> value_of(const ConfKey& key, const codec::RdzvConf& conf,
                                const Facts& facts);
  const Value& at(std::string_view key) const;

  std::map<std::string, Value, std::less<>> values_;
};

// Returns whether a backend with this key would accept the value. Does not look at files.
bool looks_right(const ConfKey& key, const std::string& value);

}  // namespace lockstep::launch
