// Files of settings as AWS's and others' tools write them: "[section]", "key = value", comments.
// Bounded; errors name a line and never repeat it, as it may be a secret.
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
  std::size_t members = 10'000;  // and sections, together
};

struct IniSection {
  std::string name;  // without quotes, with single spaces: "profile my work"
  // Keys in small letters. Values without comments behind them and white space around them.
  std::vector<std::pair<std::string, std::string>> members;

  // Of members with the same name the last one counts; "" where there is none.
  std::string_view value(std::string_view key) const;
};

struct Ini {
  std::vector<IniSection> sections;  // the first, "", has what stands before any section

  // nullptr: there is none. Sections of the same name are one.
  const IniSection* section(std::string_view name) const;
};

// Indented lines below a key (AWS's nested settings, values that go on) are left out. `what` names
// the file in errors.
Result<Ini> parse_ini(std::string_view text, std::string_view what, const IniLimits& limits = {});

// Without the quotes that TOML has around a text.
std::string ini_unquoted(std::string_view value);

}  // namespace lockstep::codec
