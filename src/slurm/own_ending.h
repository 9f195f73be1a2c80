// How a submitted job ended, told by its own agents instead of Slurm's exit code alone. Pure except
// read_own_ending().
#pragma once

#include "slurm/job_folder.h"
#include "slurm/why_text.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// The worker that failed first.
struct Culprit {
  std::int64_t rank = 0;
  std::string host = {};
  std::string how = {};      // "exited with 7"
  std::string message = {};  // one line of the worker's error; empty: none left
  std::string log = {};      // path of its stderr on `host`; empty: none
  std::vector<std::string> last_words = {};
  std::vector<std::string> notes = {};   // such as "out of memory"
  std::vector<std::string> others = {};  // where the other ranks of the node were
  std::int64_t failed_ms = 0;
};
// Reads the culprit in an agent's report; nullopt: the report blames no worker.
std::optional<Culprit> read_culprit(std::string_view report);

struct OwnEnding {
  BatchState state;
  std::optional<Culprit> culprit = {};
  // "n1: ranks 0-7 were in all_reduce, train.py:88", when the nodes stopped their ranks.
  std::vector<std::string> others = {};
  std::vector<std::string> left_out = {};  // lines "n1: why" for nodes excluded from the run
};
// Reads the state and all reports of a job. Errors: not_found (the batch step has not begun, or no
// such folder).
Result<OwnEnding> read_own_ending(const JobFolder& folder);

// Returns whether the recorded end is that of the job's last run.
bool has_ended(const OwnEnding& own, const JobReport& job);

// Adds what the job told about itself to Slurm's explanation. Ignores an `own` of another job.
void add_own_words(const OwnEnding& own, Explained& job);

// Explains a job forgotten by Slurm, from the job's own record; nullopt: the record has no end.
std::optional<Explained> explain_forgotten(const OwnEnding& own, const std::string& name);

}  // namespace lockstep::slurm
