// `scontrol show partition`: what a partition lets jobs have.
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
  std::optional<std::int64_t> default_time = {};  // for jobs that ask for none; nullopt: max_time
  std::optional<int> max_nodes = {};              // of a job
  std::optional<int> min_nodes = {};
  std::optional<int> total_nodes = {};
  std::string nodes = {};  // Slurm's list
  // Empty: all.
  std::string accounts = {};
  std::string groups = {};
  std::string qos_allowed = {};
  std::string qos = {};  // the partition's own, whose limits count too
};

std::vector<std::string> scontrol_partitions_command();
std::vector<Partition> parse_partitions(std::string_view text);

}  // namespace lockstep::slurm
