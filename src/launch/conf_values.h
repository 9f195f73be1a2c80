// --rdzv-conf as one backend reads it: text becomes typed values once, by that backend's keys.
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

// The longest time that is accepted: clocks count nanoseconds in 64 bits, and a sum of longer times
// would overflow them.
inline constexpr std::int64_t kYearInSeconds = 365LL * 24 * 3600;

// One setting that a backend reads.
struct ConfKey {
  enum class Type {
    number,  // whole, from `least` to `most`
    flag,
    choice,  // one of two words, in any case
    text,
    file,    // there must be one
    secret,  // a file that only its owner may use: the value is what is in it
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
  // Keys that are not among `keys` stay unread, whatever their values are, as with torchrun.
  static Result<ConfValues> read(std::span<const ConfKey> keys, const codec::RdzvConf& conf,
                                 const Facts& facts);

  // Whether the user gave it; false for a key that the backend does not have.
  bool given(std::string_view key) const;
  // Asking for a key that is not among the backend's is a bug.
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

// Whether a backend with this key could read the value; facts of files are not looked at.
bool looks_right(const ConfKey& key, const std::string& value);

}  // namespace lockstep::launch
