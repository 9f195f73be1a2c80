// The traces of a profile: from the agent's folder into the user's, and merged into one.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::here {

// Returns the path of the finished trace of a rank. nullopt: there is none yet.
std::optional<std::string> finished_trace(const std::string& folder, std::int64_t id, int rank);

// Moves a trace to `to`. Takes only a regular file of this user: a rank may put anything there. A
// stop signal, which must be blocked, fails it with Errc::canceled and the number in Error::sys.
Status take_trace(const std::string& from, const std::string& to);

// "FOLDER/rank-3.json"
std::string trace_path(const std::string& folder, int rank);

struct Merged {
  std::string path;                        // "FOLDER/profile.json"
  std::vector<int> ranks = {};             // the ranks with events in the file
  std::vector<std::string> left_out = {};  // "rank 3: the trace is not whole"
};
// Merges the traces of the ranks in the user's folder. A stop signal fails it as take_trace().
Result<Merged> merge_traces(const std::string& folder, const std::vector<int>& ranks);

}  // namespace lockstep::jobs::here
