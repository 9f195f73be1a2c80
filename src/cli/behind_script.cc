#include "cli/behind_script.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace lockstep::cli {
namespace {

// "--nproc_per_node=8" is "nproc-per-node"; a word without two dashes is empty.
std::string long_name(std::string_view word) {
  if (!word.starts_with("--")) return {};
  std::string name(word.substr(2, word.find('=') - 2));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// Returns whether the word looks like a value of the option, and not like a script.
bool is_value(const Option& option, std::string_view word) {
  if (std::find(option.choices.begin(), option.choices.end(), word) != option.choices.end())
    return true;
  const bool number = word.find_first_not_of("0123456789") == std::string_view::npos;
  return !word.empty() && (number || word.find(':') != std::string_view::npos);
}

}  // namespace

std::string behind_script_hint(const Table& table, const Parsed& parsed) {
  if (!parsed.script || parsed.dashes) return {};
  std::vector<std::string> found;
  for (const std::string& word : parsed.script_args) {
    // Words behind the script's own "--" are operands of the script, not misplaced options.
    if (word == "--") break;
    const std::string name = long_name(word);
    for (const Option* option : options_of(table))
      if (option->shapes_job && option->name == name && !parsed.has(name) &&
          std::find(found.begin(), found.end(), "--" + name) == found.end())
        found.push_back("--" + name);
  }
  if (found.empty()) return {};
  const std::string script = printable(*parsed.script);
  return fmt::format(
      "{0} {3} to {1}, as all words behind the script do; if {2} is meant, put {0} in front of "
      "{1}; \"-- {1} ...\" ends this hint",
      join(found, " and "), script, table.program, found.size() == 1 ? "goes" : "go");
}

std::string value_as_script_hint(const Table& table, const Parsed& parsed) {
  if (!parsed.script || parsed.valueless.empty() || parsed.dashes) return {};
  for (const Option* option : options_of(table))
    if (option->name == parsed.valueless && is_value(*option, *parsed.script))
      return fmt::format("--{0} takes a value only behind '=': write --{0}={1}", option->name,
                         printable(*parsed.script));
  return {};
}

}  // namespace lockstep::cli
