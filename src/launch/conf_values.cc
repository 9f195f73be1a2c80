#include "launch/conf_values.h"

#include "base/text.h"
#include "launch/rules.h"

#include <fmt/core.h>

namespace lockstep::launch {
namespace {

constexpr std::size_t kMaxSecretBytes = 4096;

Failure bad_option(std::string_view key, std::string_view what) {
  return fail(Errc::invalid_input,
              fmt::format("the rendezvous configuration option '{}' {}", key, what));
}

Status check_number(const ConfKey& key, std::int64_t value) {
  if (value >= key.least && value <= key.most) return {};
  if (key.least != 1 || key.most != kYearInSeconds)
    return bad_option(key.name,
                      fmt::format("must be between {} and {}, got {}", key.least, key.most, value));
  if (value > key.most)
    return bad_option(key.name, fmt::format("must be at most {}, got {}", key.most, value));
  return bad_option(key.name, fmt::format("must be positive, got {}", value));
}

Result<std::string> choice_of(const ConfKey& key, const std::string& given) {
  std::string value = to_lower(strip(given));
  for (const std::string_view choice : key.choices)
    if (value == choice) return value;
  return bad_option(key.name, fmt::format("must be {} or {}, got {}", key.choices[0],
                                          key.choices[1], printable(given)));
}

Result<std::string> secret_in(const ConfKey& key, const std::string& path, const Facts& facts) {
  LOCKSTEP_TRY_ASSIGN(std::string secret, read_secret(path, kMaxSecretBytes, key.name, facts));
  if (secret.size() > kMaxSecretBytes)
    return bad_option(key.name, fmt::format("is longer than {} bytes", kMaxSecretBytes));
  // Editors end files with a line break. Other white space may belong to a password.
  while (secret.ends_with('\n') || secret.ends_with('\r'))
    secret.pop_back();
  return secret;
}

}  // namespace

Result<ConfValues::Value> ConfValues::value_of(const ConfKey& key, const codec::RdzvConf& conf,
                                               const Facts& facts) {
  const std::string name(key.name);
  const auto found = conf.find(name);
  if (found == conf.end()) {
    // Not given: the default, which `given` tells from a given value.
    const bool choice = key.type == ConfKey::Type::choice;
    return Value{key.otherwise, std::string(choice ? key.choices[0] : key.text_otherwise), false};
  }
  Value value{0, found->second, true};
  switch (key.type) {
    case ConfKey::Type::number: {
      LOCKSTEP_TRY_ASSIGN(const auto number, codec::rdzv_conf_int(conf, name));
      value.number = *number;
      LOCKSTEP_TRY(check_number(key, value.number));
      break;
    }
    case ConfKey::Type::flag: {
      LOCKSTEP_TRY_ASSIGN(const auto flag, codec::rdzv_conf_bool(conf, name));
      value.number = *flag ? 1 : 0;
      break;
    }
    case ConfKey::Type::choice: {
      LOCKSTEP_TRY_ASSIGN(value.text, choice_of(key, found->second));
      break;
    }
    case ConfKey::Type::file:
      if (facts.file_kind(found->second) != FileKind::file)
        return bad_option(name, fmt::format("names no file: {}", printable(found->second)));
      break;
    case ConfKey::Type::secret: {
      LOCKSTEP_TRY_ASSIGN(value.text, secret_in(key, found->second, facts));
      break;
    }
    case ConfKey::Type::text:
      break;
  }
  return value;
}

Result<ConfValues> ConfValues::read(std::span<const ConfKey> keys, const codec::RdzvConf& conf,
                                    const Facts& facts) {
  ConfValues values;
  for (const ConfKey& key : keys) {
    LOCKSTEP_TRY_ASSIGN(values.values_[std::string(key.name)], value_of(key, conf, facts));
  }
  return values;
}

const ConfValues::Value& ConfValues::at(std::string_view key) const {
  const auto found = values_.find(key);
  // Only a typo in a backend's code can get here.
  LOCKSTEP_CHECK(found != values_.end());
  return found->second;
}

bool ConfValues::given(std::string_view key) const {
  const auto found = values_.find(key);
  return found != values_.end() && found->second.given;
}

std::int64_t ConfValues::number(std::string_view key) const {
  return at(key).number;
}

std::chrono::seconds ConfValues::seconds(std::string_view key) const {
  return std::chrono::seconds(number(key));
}

std::optional<bool> ConfValues::flag(std::string_view key) const {
  const Value& value = at(key);
  return value.given ? std::optional<bool>(value.number != 0) : std::nullopt;
}

const std::string& ConfValues::text(std::string_view key) const {
  return at(key).text;
}

bool looks_right(const ConfKey& key, const std::string& value) {
  const std::string name(key.name);
  const codec::RdzvConf conf = {{name, value}};
  switch (key.type) {
    case ConfKey::Type::number: {
      const auto number = codec::rdzv_conf_int(conf, name);
      return number && check_number(key, **number);
    }
    case ConfKey::Type::flag:
      return codec::rdzv_conf_bool(conf, name).has_value();
    case ConfKey::Type::choice:
      return choice_of(key, value).has_value();
    case ConfKey::Type::text:
    case ConfKey::Type::file:
    case ConfKey::Type::secret:
      break;
  }
  return true;
}

}  // namespace lockstep::launch
