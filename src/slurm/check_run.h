// Checks a job before it is queued: a script, the words of a submission, a hostfile or a ds_config.
// Reads what lies here, asks sbatch, and gives findings.
#pragma once

#include "base/error.h"
#include "slurm/lints.h"
#include "slurm/tools.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

// What `sbatch --test-only` said.
struct TestOnly {
  bool asked = false;  // false: there is no sbatch here, or Slurm does not answer
  bool accepted = false;
  std::string why_not = {};  // asked is false, or it was refused: Slurm's own line
  std::string start = {};    // accepted: "2026-11-22T19:11:45"
  std::string nodes = {};    // "n[1-2]"
};
// Of what sbatch prints. Pure.
TestOnly read_test_only(bool succeeded, std::string_view printed);

struct CheckReport {
  std::vector<Finding> findings;
  TestOnly test_only;

  bool has_errors() const;
};

struct CheckRequest {
  std::optional<std::string> script = {};  // a path
  std::optional<std::string> text = {};    // what is in it; not given: it is read
  std::vector<Setting> settings = {};      // of the command line; they count more than the script's
  std::vector<std::string> launch = {};    // without a script: what is to be started
  std::vector<std::string> hostfiles = {};
  std::vector<std::string> ds_configs = {};
  bool ask_slurm = true;
  bool lockstep_launches = false;  // the ranks are started by Lockstep, whatever the script does
};

// The words behind `lockstep check` that name a job: a script (and options of sbatch), or a command
// line that begins with sbatch, submit, srun or a launcher. What they say is added to `request`.
Status read_check_words(const std::vector<std::string>& words, CheckRequest& request);

// Runs one of Slurm's programs, ten seconds at most.
Result<proc::ToolOutput> run_briefly(const std::vector<std::string>& argv);

// Facts of this machine; the time of a few reads. `script` says what need not be looked up.
CheckFacts gather_facts(const JobScript& script, const RunTool& run = run_briefly);

// Errors: a file that is named cannot be read.
Result<CheckReport> run_check(const CheckRequest& request, const RunTool& run = run_briefly);

}  // namespace lockstep::slurm
