// Splits the words of another launcher into options and script. Those launchers use Python's
// argparse, so the words are split as argparse splits them. Pure.
#pragma once

#include "base/error.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

struct ArgumentRow {
  std::string_view name;  // long name with dashes, without the leading two
  bool takes_value = true;
  char letter = 0;             // short form
  std::string_view same = {};  // name of another row, if this row is an alias
  bool ends = false;           // stop reading behind this option (--help)
};

struct GivenArgument {
  std::string name;   // name of the row, aliases resolved
  std::string value;  // empty for flags
};

struct SplitArguments {
  std::vector<GivenArgument> options;  // in the order given
  std::vector<std::string> rest;       // the script and its arguments

  bool has(std::string_view name) const;
  std::string text(std::string_view name) const;  // the last value given; empty: none
};

// Splits the words. launcher: name for errors, such as "torchrun". '-' and '_' are equal in long
// names. Errors: invalid_input.
Result<SplitArguments> split_arguments(std::string_view launcher, std::span<const ArgumentRow> rows,
                                       std::span<const std::string> words);

}  // namespace lockstep::launchers
