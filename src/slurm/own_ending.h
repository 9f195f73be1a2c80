// What the agents of a job that Lockstep has submitted say of its end, in place of Slurm's exit
// code alone. Pure but for read_own_ending().
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
  std::string message = {};  // one line of its own error; empty: it left none
  std::string log = {};      // the file of its stderr, on its host; empty: none
  std::vector<std::string> last_words = {};
  std::vector<std::string> notes = {};  // "out of memory"
  std::int64_t failed_ms = 0;
};
// nullopt: the report blames no worker.
std::optional<Culprit> read_culprit(std::string_view report);

struct OwnEnding {
  BatchState state;
  std::optional<Culprit> culprit = {};
  std::vector<std::string> left_out = {};  // "n1: why", of nodes that took no part in the run
};
// not_found: the batch step has not begun, or there is no such folder.
Result<OwnEnding> read_own_ending(const JobFolder& folder);

// job: of which `own` tells.
void add_own_words(const OwnEnding& own, Explained& job);

// A job that Slurm has forgotten, as far as it told its end itself. nullopt: it did not.
std::optional<Explained> explain_forgotten(const OwnEnding& own, const std::string& name);

}  // namespace lockstep::slurm
