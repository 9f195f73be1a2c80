// sinfo: argv and what it prints.
#pragma once

#include "slurm/job_status.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

struct GpuKind {
  std::string type;  // "a100"; empty: the site gave it no name
  int count = 0;     // on each node
  bool operator==(const GpuKind&) const = default;
};

// "gpu:a100:8(S:0-1),gpu:v100:2,nvme:1" -> a100 8, v100 2.
std::vector<GpuKind> parse_gpus(std::string_view gres);

// Nodes of a partition that are alike.
struct NodeGroup {
  std::string partition;
  bool is_default = false;                 // where jobs go that name no partition
  bool up = true;                          // false: it starts no job
  std::string availability;                // "up", "drain", "down", "inact"
  std::optional<std::int64_t> time_limit;  // seconds; nullopt: none
  int count = 0;
  std::string state;  // "idle", "mixed", "drained", "down*", ...
  int cpus = 0;       // of a node; of the smallest where they differ
  std::int64_t memory_mb = 0;
  std::vector<GpuKind> gpus;
  std::string nodes;  // Slurm's list
};

std::vector<std::string> sinfo_command();
std::vector<NodeGroup> parse_sinfo(std::string_view text);

// Nodes that are out of service, and why.
struct OutOfService {
  std::string nodes;  // Slurm's list
  std::string state;  // "drained", "down*"
  Moment since;
  std::string reason;
};

std::vector<std::string> sinfo_reasons_command();
std::vector<OutOfService> parse_sinfo_reasons(std::string_view text);

// May a job be started on a node in this state, sooner or later, without anybody's help?
bool is_in_service(std::string_view state);

}  // namespace lockstep::slurm
