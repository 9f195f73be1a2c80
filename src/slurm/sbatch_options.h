// The options of sbatch, Slurm 22.05 to 26.05, and a reader of words that works like sbatch: as
// getopt_long() does, up to the first word that is not an option. Pure.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

enum class Takes : std::uint8_t {
  nothing,
  value,  // "--nodes=2", "--nodes 2", "-N2", "-N 2"
  maybe,  // "--exclusive=user" or "--exclusive"; the next word is never the value
};

struct SbatchOption {
  std::string_view name;
  char letter = 0;  // 0: none
  Takes takes = Takes::nothing;
  std::string_view same_as = {};  // the usual name, for options with two names
  bool plugin = false;            // added by pyxis, which many sites have
};

// Returns all options, sorted by name.
std::span<const SbatchOption> sbatch_options();

struct Setting {
  std::string name;  // usual long name: "nodes" for -N2, --nodes=2 and --node 2
  std::string value = {};
  bool has_value = false;
  int line = 0;       // line of the script; 0: from the command line
  int component = 0;  // component of a heterogeneous job
  bool known = true;  // false: not an option of sbatch; perhaps of a site's plugin

  bool operator==(const Setting&) const = default;
};

// Returns the option that sbatch takes `name` for: a full name, or an unambiguous beginning. name:
// without dashes. Errors: not_found, invalid_input (ambiguous).
Result<const SbatchOption*> find_sbatch_option(std::string_view name);

enum class UnknownOptions : std::uint8_t { refuse, keep };

struct ReadSettings {
  std::vector<Setting> settings;
  std::size_t words = 0;  // number of words read, including "--"; the script follows
};
// Reads options. A kept unknown option takes the next word as its value, unless the option is
// written with '=' or the next word begins with '-'. Errors: invalid_input.
Result<ReadSettings> read_settings(std::span<const std::string> words,
                                   UnknownOptions unknown = UnknownOptions::refuse);

// The same for words with line numbers, as #SBATCH lines have.
struct PlacedWord {
  std::string text;
  int line = 0;
};
// An unreadable option. Reading continues behind it.
struct SettingProblem {
  int line = 0;
  Error error;
};
struct PlacedSettings {
  std::vector<Setting> settings;
  std::vector<SettingProblem> problems;
  std::size_t words = 0;  // words read; if fewer than given, words[words] is not an option
};
PlacedSettings read_placed_settings(std::span<const PlacedWord> words, UnknownOptions unknown);
// Reads the words behind "srun", keeping unknown options.
PlacedSettings read_srun_settings(std::span<const PlacedWord> words);

// Prints a setting as one word: "--nodes=2".
std::string word_of(const Setting& setting);

// Returns the last setting with that name, which overrides earlier ones; nullptr: none. Searches
// only the first component.
const Setting* find_setting(std::span<const Setting> settings, std::string_view name);

}  // namespace lockstep::slurm
