// Reads `scontrol show partition`: the limits of partitions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

struct Partition {
  std::string name;
  std::string state = {};  // UP, DOWN, DRAIN, INACTIVE
  bool is_default = false;
  std::optional<std::int64_t> max_time = {};      // seconds; nullopt: no limit
  std::optional<std::int64_t> default_time = {};  // for jobs without --time; nullopt: max_time
  std::optional<int> max_nodes = {};              // per job
  std::optional<int> min_nodes = {};
  std::optional<int> total_nodes = {};
  std::string nodes = {};  // Slurm's list
  // Lists of who may use the partition; empty: everybody.
  std::string accounts = {};
  std::string groups = {};
  std::string qos_allowed = {};
  std::string qos = {};  // the partition's own QOS, whose limits apply too
};

std::vector<std::string> scontrol_partitions_command();
std::vector<Partition> parse_partitions(std::string_view text);

}  // namespace lockstep::slurm
