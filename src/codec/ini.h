// Settings files in the style of AWS and similar tools: "[section]", "key = value", comments.
// Bounded in size. Errors name a line but never quote it, since the line may hold a secret.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::codec {

struct IniLimits {
  std::size_t bytes = 256U << 10;
  std::size_t members = 10'000;  // members and sections together
};

struct IniSection {
  std::string name;  // without quotes and with single blanks: "profile my work"
  // Keys in lower case. Values without trailing comments and surrounding white space.
  std::vector<std::pair<std::string, std::string>> members;

  // Returns the last value of `key`, or "".
  std::string_view value(std::string_view key) const;
};

struct Ini {
  std::vector<IniSection> sections;  // the first one, "", holds the members before any section

  // Returns the section, or nullptr. Sections of the same name are one.
  const IniSection* section(std::string_view name) const;
};

// Parses the text. Skips indented lines below a key (nested settings of AWS, continued values).
// `what` names the file in errors.
Result<Ini> parse_ini(std::string_view text, std::string_view what, const IniLimits& limits = {});

// Removes the quotes that TOML puts around a text.
std::string ini_unquoted(std::string_view value);

}  // namespace lockstep::codec
