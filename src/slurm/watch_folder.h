// The heartbeat folder of a run, watch/RUN.EPOCH in the job's folder. It shows which process is in
// charge of the job. Epoch 0 belongs to the batch step. When the batch step dies, the node that
// creates the folder of the next epoch is in charge: mkdir lets exactly one succeed. Contents:
//   lease      changes every second while the owner lives
//   NODE       the same for each node's process, from epoch 1 on; "... ended" after its agent's end
//   NODE.log   the node's output from epoch 1 on; the owner copies it into the job's output
#pragma once

#include "base/error.h"
#include "slurm/job_folder.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

constexpr std::string_view kLease = "lease";

enum class WatchFile { lease, beat, log };
WatchFile kind_of_watch_file(std::string_view name);
std::string watch_log(std::string_view node);  // returns the name of the node's log

// The heartbeat of the process in charge, with a new number each time. The number comes first,
// because a file has room for a part of a long name only. ends_agents: the agents are to end.
std::string lease_text(int number, bool ends_agents, std::string_view host);
bool tells_to_end(std::string_view lease);

// A node's heartbeat. number: makes each text differ from the one before.
std::string beat_text(int number, bool agent_ended);
bool tells_agent_end(std::string_view beat);

class WatchFolder {
 public:
  WatchFolder(const JobFolder& job, int run, int epoch);

  // Takes charge of the epoch. Errors: already_exists (another process was faster).
  Status claim() const;
  bool is_claimed() const;
  std::string at(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Overwrites a heartbeat in place: network file systems show a replaced file late.
  void beat(std::string_view name, std::string_view text) const;
  std::string read(std::string_view name) const;  // empty: no such file
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

}  // namespace lockstep::slurm
