// The command line, driven by tables of rows: reads argv exactly as Python's argparse (3.14) does
// with torchrun's table, and prints help from the same rows. Superset: '-' and '_' are equal
// anywhere in a long name, so prefixes that torchrun calls ambiguous only for their two spellings
// are taken.
#pragma once

#include "base/error.h"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

enum class Kind { flag, text, integer, number };

struct Option {
  std::string_view name;  // long name with dashes, without the leading two
  Kind kind = Kind::flag;
  std::string_view metavar = {};
  std::string_view help = {};
  std::string_view shown_default = {};  // for help only
  std::string_view env = {};            // variable that replaces the default
  char letter = 0;                      // short form
  std::vector<std::string_view> choices = {};
  bool own = false;           // not torchrun's: gives way to torchrun's rows in abbreviations
  bool ends_parsing = false;  // what follows is not looked at (--help)
};

struct Group {
  std::string_view title;
  std::vector<Option> options;
};

struct Table {
  std::string_view program;  // "lockstep run"
  std::string_view summary;  // lines under the usage line
  std::string_view epilog;   // lines at the end of help
  bool takes_script = true;  // the first positional and all after it belong to the script
  std::vector<Group> groups;
};

struct Parsed {
  // By long name, as typed, checked for kind; a flag that is on is "1". Absent: use the default.
  std::map<std::string, std::string, std::less<>> values;
  std::map<std::string, std::string, std::less<>> variables;  // long name: where the value is from
  std::string ended_by;  // long name of the option that ended parsing, or empty
  std::optional<std::string> script;
  std::vector<std::string> script_args;

  bool has(std::string_view name) const { return values.find(name) != values.end(); }
  std::optional<std::string> text(std::string_view name) const;
  std::string text_or(std::string_view name, std::string_view fallback) const;
};

struct ParseFailure {
  int exit_code = 2;  // 2: argv is wrong; 1: where torchrun's parser raises
  Error error;
};

// As Python's float(): "nan" and "inf", too.
std::optional<double> python_float(std::string_view text);

using ParseResult = tl::expected<Parsed, ParseFailure>;
using GetEnv = std::function<std::optional<std::string>(std::string_view name)>;

// args: without the program's name.
ParseResult parse_options(const Table& table, std::span<const std::string> args, const GetEnv& env);

std::string usage_line(const Table& table);  // "usage: lockstep run [options] script [...]"
std::string help_text(const Table& table);   // at most 80 columns
// One group's part of help_text, heading included.
std::string help_group(const Group& group);

}  // namespace lockstep::cli
