// The words of `lockstep submit`: options of its own, of sbatch and of `lockstep run`, then the
// command.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "cli/variable_options.h"
#include "slurm/sbatch_options.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct SubmitOptions {
  std::int64_t spare = 0;
  std::optional<std::int64_t> min_nodes;
  std::optional<std::string> name;
  std::optional<std::string> chain;
  std::string binary = "auto";
  std::vector<std::string> wheels;
  std::string wheel_place = "/tmp";
  bool print = false;
  bool follow = false;
  std::string fold = "auto";
  bool wait = false;
  bool json = false;
  bool no_check = false;
  std::optional<std::string> preflight;
  std::optional<std::string> preflight_import;
  bool use_bad_nodes = false;
  VariableOptions variables;
};

const Table& submit_table();

// Returns the number of --chain in the form of slurm::JobWish: nullopt: no chain; 0: no limit.
Result<std::optional<int>> chain_of(const SubmitOptions& options);

// Returns the first given option that needs --on; empty: there is none.
std::string needs_login(const Parsed& parsed);

struct SubmitWords {
  Parsed own;  // by submit_table()
  std::vector<slurm::Setting> sbatch;
  std::vector<std::string> run;      // options of `lockstep run`, as typed
  std::vector<std::string> command;  // the command or batch script, with its arguments
  // The options for the login host of --on: all but those about reaching the host and about
  // following the job from here.
  std::vector<std::string> there;
  bool dashes = false;  // "--" stood before the command
};

// Splits the words. Options stand first, in any order. A long option belongs to the first of
// `lockstep submit`, sbatch and `lockstep run` that has it; short options are sbatch's. "--" or the
// first word that is not an option begins the command. Pure.
tl::expected<SubmitWords, ParseFailure> read_submit_words(const std::vector<std::string>& words,
                                                          const GetEnv& env);

}  // namespace lockstep::cli
