// sinfo: its argv, and the parser of its output.
#pragma once

#include "slurm/job_report.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

struct GpuKind {
  std::string type;  // "a100"; empty: the site names no type
  int count = 0;     // per node
  bool operator==(const GpuKind&) const = default;
};

// Parses the GPUs of a GRES list: "gpu:a100:8(S:0-1),gpu:v100:2,nvme:1" -> a100 8, v100 2.
std::vector<GpuKind> parse_gpus(std::string_view gres);

// Nodes of a partition with equal properties.
struct NodeGroup {
  std::string partition;
  bool is_default = false;                 // partition of jobs that name none
  bool up = true;                          // false: starts no jobs
  std::string availability;                // "up", "drain", "down", "inact"
  std::optional<std::int64_t> time_limit;  // seconds; nullopt: none
  int count = 0;
  std::string state;  // "idle", "mixed", "drained", "down*", ...
  int cpus = 0;       // per node; of the smallest node where they differ
  std::int64_t memory_mb = 0;
  std::vector<GpuKind> gpus;
  std::string nodes;  // Slurm's list
};

std::vector<std::string> sinfo_command();
std::vector<NodeGroup> parse_sinfo(std::string_view text);

// Nodes out of service, with the reason.
struct OutOfService {
  std::string nodes;  // Slurm's list
  std::string state;  // "drained", "down*"
  Moment since;
  std::string reason;
};

std::vector<std::string> sinfo_reasons_command();
std::vector<OutOfService> parse_sinfo_reasons(std::string_view text);

// Returns whether a job can start on a node in this state, now or later, without an administrator's
// help.
bool is_in_service(std::string_view state);

}  // namespace lockstep::slurm
