#include "slurm/partitions.h"

#include "base/text.h"
#include "slurm/fields.h"
#include "slurm/scontrol_command.h"
#include "slurm/times.h"

#include <utility>

namespace lockstep::slurm {
namespace {

std::string unless_all(const std::string& text) {
  return text == "ALL" ? std::string() : text;
}

}  // namespace

std::vector<std::string> scontrol_partitions_command() {
  // --all includes hidden partitions, in which a job may wait.
  return {"scontrol", "--oneliner", "--all", "show", "partition"};
}

std::vector<Partition> parse_partitions(std::string_view text) {
  std::vector<Partition> partitions;
  for (const std::string& line : split(text, '\n')) {
    Partition partition;
    partition.name = oneline_value(line, "PartitionName");
    if (!line.starts_with("PartitionName=") || partition.name.empty()) continue;
    partition.state = oneline_value(line, "State");
    partition.is_default = oneline_value(line, "Default") == "YES";
    partition.max_time = parse_duration(oneline_value(line, "MaxTime"));
    partition.default_time = parse_duration(oneline_value(line, "DefaultTime"));
    partition.max_nodes = small_number(oneline_value(line, "MaxNodes"));
    partition.min_nodes = small_number(oneline_value(line, "MinNodes"));
    partition.total_nodes = small_number(oneline_value(line, "TotalNodes"));
    partition.nodes = oneline_value(line, "Nodes");
    partition.accounts = unless_all(oneline_value(line, "AllowAccounts"));
    partition.groups = unless_all(oneline_value(line, "AllowGroups"));
    partition.qos_allowed = unless_all(oneline_value(line, "AllowQos"));
    partition.qos = oneline_value(line, "QoS");
    partitions.push_back(std::move(partition));
  }
  return partitions;
}

}  // namespace lockstep::slurm
