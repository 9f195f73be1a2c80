// Checks a job before submission: a script, the words of a submission, a hostfile or a ds_config.
// Reads local files, asks sbatch, and returns findings.
#pragma once

#include "base/error.h"
#include "slurm/lints.h"
#include "slurm/tools.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

// The answer of `sbatch --test-only`.
struct TestOnly {
  bool asked = false;  // false: no sbatch on this host, or Slurm does not answer
  bool accepted = false;
  std::string why_not = {};  // set if not asked or refused: Slurm's own line
  std::string start = {};    // accepted: "2026-11-22T19:11:45"
  std::string nodes = {};    // "n[1-2]"
};
// Parses what sbatch prints. Pure.
TestOnly read_test_only(bool succeeded, std::string_view printed);

struct CheckReport {
  std::vector<Finding> findings;
  TestOnly test_only;

  // Returns whether a finding has severity error.
  bool has_errors() const;
};

struct CheckRequest {
  std::optional<std::string> script = {};  // a path
  std::optional<std::string> text = {};    // the script's text; nullopt: read it from the path
  std::vector<Setting> settings = {};    // options of the command line; they override the script's
  std::vector<std::string> launch = {};  // the command to start, for a job without a script
  std::vector<std::string> hostfiles = {};
  std::vector<std::string> ds_configs = {};
  bool ask_slurm = true;
  bool lockstep_launches = false;  // Lockstep starts the ranks (lockstep submit)
};

// Parses the words behind `lockstep check` that name a job, and adds them to `request`. Accepts a
// script with options of sbatch, or a command line that begins with sbatch, submit, srun or a
// launcher. Errors: invalid_input.
Status read_check_words(const std::vector<std::string>& words, CheckRequest& request);

// Runs one of Slurm's programs with a timeout of ten seconds.
Result<proc::ToolOutput> run_briefly(const std::vector<std::string>& argv);

// Collects facts of this machine for the lints; takes the time of a few file reads and version
// queries. Skips queries that `script` makes unnecessary.
CheckFacts gather_facts(const JobScript& script, const RunTool& run = run_briefly);

// Runs all checks of a request. Errors: a named file cannot be read.
Result<CheckReport> run_check(const CheckRequest& request, const RunTool& run = run_briefly);

}  // namespace lockstep::slurm
