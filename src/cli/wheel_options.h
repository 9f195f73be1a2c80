// The command line of `lockstep wheel`.
#pragma once

#include "cli/options.h"
#include "slurm/sbatch_options.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct WheelOptions {
  std::string source;
  std::string ops;
  std::string arch;
  std::string isa;
  std::string python;
  std::string out;
  std::int64_t jobs = 0;  // 0: not given
  std::optional<std::string> drop;
  std::optional<std::string> on;
  bool slurm = false;
  std::vector<slurm::Setting> settings;  // for the job that builds the wheel
  bool print = false;
  bool force = false;
  bool json = false;
};

const Table& wheel_table();

struct WheelWords {
  Parsed own;  // by wheel_table()
  std::vector<slurm::Setting> sbatch;
};
// Splits the words. With --slurm or --on, options that are not in this table belong to sbatch. In
// other calls an unknown option is an error. Pure.
tl::expected<WheelWords, ParseFailure> read_wheel_words(const std::vector<std::string>& words,
                                                        const GetEnv& env);
// Returns the checked options. Errors: invalid_input.
Result<WheelOptions> wheel_options(const WheelWords& words);

}  // namespace lockstep::cli
