// The options of sbatch, Slurm 22.05 to 26.05, and how sbatch reads words: as getopt_long() does,
// up to the first word that is no option. Pure.
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
  maybe,  // "--exclusive=user" or "--exclusive", never a word of its own
};

struct SbatchOption {
  std::string_view name;
  char letter = 0;  // 0: it has none
  Takes takes = Takes::nothing;
  std::string_view same_as = {};  // the usual name of an option that has two
  bool plugin = false;            // pyxis's, which many sites have
};

// By name.
std::span<const SbatchOption> sbatch_options();

struct Setting {
  std::string name;  // the usual long name: "nodes" for -N2, --nodes=2 and --node 2
  std::string value = {};
  bool has_value = false;
  int line = 0;       // of the script; 0: not from a script
  int component = 0;  // of a heterogeneous job
  bool known = true;  // false: no option of sbatch itself; a site's plugin may have added it

  bool operator==(const Setting&) const = default;
};

// The option that sbatch takes `name` for: in full, or a beginning that only one option has.
// not_found: none; invalid_input: several. `name` is without dashes.
Result<const SbatchOption*> find_sbatch_option(std::string_view name);

enum class UnknownOptions : std::uint8_t { refuse, keep };

struct ReadSettings {
  std::vector<Setting> settings;
  std::size_t words = 0;  // that were read, a "--" included; behind them is the script
};
// A kept unknown option has the word behind it as its value, unless it is written with '=' or that
// word begins with '-'.
Result<ReadSettings> read_settings(std::span<const std::string> words,
                                   UnknownOptions unknown = UnknownOptions::refuse);

// The same for words that know their line: what the #SBATCH lines of a script have.
struct PlacedWord {
  std::string text;
  int line = 0;
};
// An option that cannot be read, in order; reading goes on behind it.
struct SettingProblem {
  int line = 0;
  Error error;
};
struct PlacedSettings {
  std::vector<Setting> settings;
  std::vector<SettingProblem> problems;
  std::size_t words = 0;  // fewer than there are: words[words] is no option
};
PlacedSettings read_placed_settings(std::span<const PlacedWord> words, UnknownOptions unknown);
// The words behind "srun".
PlacedSettings read_srun_settings(std::span<const PlacedWord> words);

// "--nodes=2", for a script or a command line of sbatch.
std::string word_of(const Setting& setting);

// The last one of that name, which is the one that counts; nullptr: there is none. Only of the
// first component.
const Setting* find_setting(std::span<const Setting> settings, std::string_view name);

}  // namespace lockstep::slurm
