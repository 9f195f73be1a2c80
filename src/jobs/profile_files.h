// The traces of a profile in the user's folder: brought there, and merged into one.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <functional>
#include <string>
#include <vector>

namespace lockstep::jobs {

// Writes a trace beside its place, and then moves the file. After a failure, an older trace stays.
Status write_trace(const std::string& to, const std::function<Status(const io::Fd&)>& write);

// Moves a trace of this machine to `to`. Fails as status::read_trace(), write_trace() and
// `meanwhile`, which is called after each MiB.
Status take_trace(const std::string& from, const std::string& to,
                  const std::function<Status()>& meanwhile);

// "FOLDER/rank-3.json"
std::string trace_path(const std::string& folder, int rank);

struct Merged {
  std::string path;                        // "FOLDER/profile.json"
  std::vector<int> ranks = {};             // the ranks with events in the file
  std::vector<std::string> left_out = {};  // "rank 3: the trace is not whole"
};
// Merges the traces of the ranks in the user's folder. A stop signal fails it as
// status::read_trace().
Result<Merged> merge_traces(const std::string& folder, const std::vector<int>& ranks);

}  // namespace lockstep::jobs
