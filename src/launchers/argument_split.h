// Where the options of another launcher end and its script begins. Those launchers are written with
// Python's argparse, and their words are split here as argparse splits them. Pure.
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
  std::string_view same = {};  // the name of the row that this one is another spelling of
  bool ends = false;           // nothing behind it is looked at (--help)
};

struct GivenArgument {
  std::string name;   // the row's
  std::string value;  // empty for flags
};

struct SplitArguments {
  std::vector<GivenArgument> options;  // in the order given
  std::vector<std::string> rest;       // the script and its arguments

  bool has(std::string_view name) const;
  std::string text(std::string_view name) const;  // the last one given; empty: none was
};

// launcher: for errors, as "torchrun". '-' and '_' are equal in long names.
Result<SplitArguments> split_arguments(std::string_view launcher, std::span<const ArgumentRow> rows,
                                       std::span<const std::string> words);

}  // namespace lockstep::launchers
