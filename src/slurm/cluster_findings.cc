// Probes a Slurm cluster, and reports findings that would stop or hinder jobs there.
#include "base/text.h"
#include "slurm/cluster_text.h"
#include "slurm/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::slurm {
namespace {

constexpr int kOldest = 22;  // year of the oldest release tested: 22.05

// Returns the error text of a tool as one line, or the output if there is no error text.
std::string words_of(const proc::ToolOutput& said) {
  std::string text(strip(said.err.empty() ? said.out : said.err));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return printable(text);
}

void check_partitions(const ClusterFacts& facts, std::vector<ClusterFinding>& findings) {
  const auto partitions = summarize(facts);
  const auto usable = [](const PartitionSummary& each) {
    return each.state == "UP" && each.in_service > 0;
  };
  if (std::none_of(partitions.begin(), partitions.end(), usable)) {
    findings.push_back(
        {true, "no-partition", "no partition can start a job", "ask the cluster's administrators"});
    return;
  }
  for (const PartitionSummary& each : partitions) {
    if (each.state != "UP")
      findings.push_back(
          {false, "partition-down",
           fmt::format("partition {} is {}", printable(each.name), to_lower(each.state)),
           "name another one with -p"});
    else if (each.in_service == 0)
      findings.push_back(
          {false, "partition-empty",
           fmt::format("no node of partition {} is in service", printable(each.name)),
           "name another one with -p"});
  }
  const auto is_default = [](const PartitionSummary& each) { return each.is_default; };
  if (std::none_of(partitions.begin(), partitions.end(), is_default))
    findings.push_back(
        {false, "no-default-partition", "there is no default partition", "name one with -p"});
}

void check_settings(const ClusterFacts& facts, std::vector<ClusterFinding>& findings) {
  const auto major = parse_int(facts.version().substr(0, facts.version().find('.')));
  if (major && *major < kOldest)
    findings.push_back({false, "old-slurm",
                        fmt::format("Slurm {} is older than the oldest tested version (22.05)",
                                    printable(facts.version())),
                        "lockstep check shows what this version would refuse"});
  if (!facts.has_accounting())
    findings.push_back({false, "no-accounting",
                        "the cluster keeps no accounts: Slurm forgets jobs some minutes after "
                        "their end",
                        "lockstep jobs remembers the jobs that it has listed"});
}

}  // namespace

ClusterProbe probe_cluster(const RunTool& run) {
  ClusterProbe probe;
  auto facts = ask_cluster(run);
  // Ask even if other questions failed: the answer tells which controller is down.
  if (const auto ping = run({"scontrol", "ping"})) probe.ping = words_of(*ping);
  if (!facts) {
    probe.error = facts.error().message;
    return probe;
  }
  probe.facts = std::move(*facts);
  const auto srun = run({"srun", "--version"});
  // Shows refusals that no setting shows, such as a missing account. Submits nothing.
  const auto tried = run({"sbatch", "--test-only", "--nodes=1", "--time=1", "--wrap=true"});
  probe.has_srun = srun && srun->exit.ok() && tried.has_value();
  if (tried && !tried->exit.ok()) probe.refusal = words_of(*tried);
  if (probe.facts->has_accounting()) {
    const auto accounts = run({"sacct", "--noheader", "--allocations", "--format=JobID"});
    if (!accounts)
      probe.sacct_error = accounts.error().message;
    else if (!accounts->exit.ok())
      probe.sacct_error = words_of(*accounts);
  }
  return probe;
}

std::vector<ClusterFinding> findings_of(const ClusterProbe& probe) {
  std::vector<ClusterFinding> findings;
  if (!probe.facts) {
    findings.push_back({true, "no-answer",
                        probe.error + (probe.ping.empty() ? "" : " (" + probe.ping + ")"),
                        "no job can be submitted until the controller answers"});
    return findings;
  }
  if (!probe.has_srun)
    findings.push_back({true, "no-commands", "sbatch or srun is not there",
                        "work on a login host that has Slurm's commands"});
  check_partitions(*probe.facts, findings);
  if (!probe.refusal.empty())
    findings.push_back({true, "refused", "Slurm would refuse a job of one node: " + probe.refusal,
                        "see -p, -A and -q of lockstep submit"});
  check_settings(*probe.facts, findings);
  if (!probe.sacct_error.empty())
    findings.push_back({false, "accounting-away",
                        "the accounts do not answer: " + probe.sacct_error,
                        "jobs run without accounting, but their endings may be forgotten"});
  for (const OutOfService& each : probe.facts->out)
    findings.push_back({false, "out-of-service",
                        fmt::format("{} is {}: {}", printable(each.nodes), printable(each.state),
                                    printable(each.reason)),
                        "jobs get other nodes"});
  return findings;
}

}  // namespace lockstep::slurm
