#include "slurm/pending_reason.h"

#include "base/text.h"
#include "slurm/pending_rows.h"
#include "slurm/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace lockstep::slurm {
namespace {

using pending_rows::kRows;
using pending_rows::Row;

// squeue prints spaces where scontrol prints underscores.
std::string normalized(std::string_view reason) {
  std::string text(strip(reason));
  std::replace(text.begin(), text.end(), ' ', '_');
  return text.empty() ? "None" : text;
}

// Reports whether the reason fits a row's pattern, in which each star stands for any text.
bool matches(std::string_view pattern, std::string_view reason) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == reason;
  if (!reason.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t at = star; at <= reason.size(); ++at)
    if (matches(rest, reason.substr(at))) return true;
  return false;
}

// Returns the nodes in "ReqNodeNotAvail,_UnavailableNodes:n[2-3]" as ": n[2-3]".
std::string detail_of(std::string_view reason) {
  constexpr std::string_view kNodes = "UnavailableNodes:";
  const std::size_t at = reason.find(kNodes);
  if (at == std::string_view::npos) return {};
  const std::string_view nodes = reason.substr(at + kNodes.size());
  return nodes.empty() ? "" : fmt::format(": {}", printable(nodes));
}

std::string or_else(const std::string& text, std::string_view otherwise) {
  return text.empty() ? std::string(otherwise) : printable(text);
}

std::string filled(std::string_view text, const JobReport& job) {
  std::string out(text);
  // scontrol takes the array's id for tasks like "12_[4-9]".
  replace_all(out, "{id}", job.id.find('[') == std::string::npos ? job.id : job.job);
  replace_all(out, "{partition}", or_else(job.partition, "?"));
  replace_all(out, "{account}", or_else(job.account, "of its own"));
  replace_all(out, "{qos}", or_else(job.qos, "of its own"));
  replace_all(out, "{nodes}", job.node_count ? nodes_text(*job.node_count) : "some nodes");
  replace_all(out, "{time}",
              job.time_limit ? duration_text(*job.time_limit) : "no limit of time (UNLIMITED)");
  replace_all(out, "{eligible}",
              job.eligible ? moment_text(*job.eligible)
              : job.start  ? moment_text(*job.start)
                           : "a time that was set");
  replace_all(out, "{dependency}", or_else(job.dependency, "which, Slurm does not say"));
  replace_all(out, "{detail}", detail_of(normalized(job.reason)));
  replace_all(out, "{reason}", printable(job.reason));
  return out;
}

const Partition* partition_of(const JobReport& job, const Surroundings& around) {
  const auto names = split(job.partition, ',');
  const auto is_its = [&](const Partition& each) {
    return std::find(names.begin(), names.end(), each.name) != names.end();
  };
  const auto found = std::find_if(around.partitions.begin(), around.partitions.end(), is_its);
  return found == around.partitions.end() ? nullptr : &*found;
}

// Adds the partition's limit to a row's text.
void add_numbers(std::string_view reason, const JobReport& job, const Surroundings& around,
                 Explanation& said) {
  const Partition* partition = partition_of(job, around);
  if (partition == nullptr) return;
  if (reason == "PartitionTimeLimit" && partition->max_time)
    said.why += fmt::format(" ({} at most)", duration_text(*partition->max_time));
  if (reason != "PartitionNodeLimit") return;
  if (partition->max_nodes)
    said.why += fmt::format(" ({} at most for a job)", nodes_text(*partition->max_nodes));
  else if (partition->total_nodes)
    said.why += fmt::format(" (it has {})", nodes_text(*partition->total_nodes));
}

// Lists nodes out of service if the job waits for nodes.
void add_out_of_service(std::string_view reason, const Surroundings& around, Explanation& said) {
  constexpr std::size_t kMost = 4;
  if (!reason.starts_with("Nodes_required") && !reason.starts_with("ReqNode") &&
      reason != "NodeDown" && !reason.starts_with("Required_node"))
    return;
  for (std::size_t i = 0; i < std::min(around.out.size(), kMost); ++i) {
    const OutOfService& each = around.out[i];
    said.advice.push_back(fmt::format("out of service: {} ({}): {}", printable(each.nodes),
                                      each.state, printable(each.reason)));
  }
}

// Explains a failed launch. If the check before jobs (prolog) fails on a node, Slurm holds the job
// for good, so name the node and how to continue without it.
void add_failed_launch(const JobReport& job, const Surroundings& around, Explanation& said) {
  const auto failed = failed_to_launch(job, around);
  std::vector<std::string> nodes;
  for (const OutOfService& each : failed) {
    nodes.push_back(each.nodes);
    said.why += fmt::format("{}{} ({}): {}", nodes.size() == 1 ? ": " : "; ", printable(each.nodes),
                            each.state, printable(each.reason));
  }
  const std::string id = filled("{id}", job);
  if (nodes.empty()) {
    said.advice.push_back(
        fmt::format("scontrol release {} tries again; sinfo -R shows which node is "
                    "out of service",
                    id));
    return;
  }
  const std::string list = printable(join(nodes, ","));
  said.advice.push_back(
      fmt::format("scontrol update JobId={0} ExcNodeList={1} and scontrol release "
                  "{0} start it on other nodes (or send it again with -x {1})",
                  id, list));
  said.advice.push_back(fmt::format("tell the cluster's administrators about {}", list));
}

// Explains BeginTime after a requeue, which the user did not set. Slurm waits cred_expire + 1 s, by
// default 121 s.
void add_after_requeue(std::string_view reason, const JobReport& job, Explanation& said) {
  if (reason != "BeginTime" || job.restarts.value_or(0) == 0) return;
  said.why += ": Slurm waits after a requeue, usually for two minutes";
}

Explanation explain_limit(std::string_view reason, std::string words, const JobReport& job) {
  // Waiting never meets a limit on a single job.
  const bool of_a_job = reason.find("PerJob") != std::string::npos ||
                        reason.find("PerNode") != std::string::npos ||
                        reason.find("QOSMin") != std::string::npos;
  Explanation said{of_a_job ? Outlook::never : Outlook::starts_by_itself, std::move(words), {}};
  said.advice.push_back(
      of_a_job ? "ask for what the limit allows"
               : "the job starts after other jobs have ended; smaller requests may start sooner");
  said.advice.push_back(filled(reason.starts_with("Assoc")
                                   ? "sacctmgr show associations account={account} shows the limits"
                                   : "sacctmgr show qos {qos} shows the limits",
                               job));
  return said;
}

// Explains one reason. An unknown reason gives the outlook unknown and no advice.
Explanation explain_reason(std::string_view reason, const JobReport& job) {
  const auto row = std::find_if(kRows.begin(), kRows.end(),
                                [&](const Row& each) { return matches(each.reason, reason); });
  if (row != kRows.end()) {
    Explanation said{row->outlook, filled(row->why, job), {}};
    if (!row->advice.empty()) said.advice.push_back(filled(row->advice, job));
    return said;
  }
  if (std::string words = limit_words(reason); !words.empty())
    return explain_limit(reason, std::move(words), job);
  return {Outlook::unknown, fmt::format("Slurm says {}", printable(job.reason)), {}};
}

// Explains a list of reasons. squeue joins the reasons of an array's tasks with commas:
// "Resources,JobHeldUser". The first reason that keeps tasks from starting by themselves counts. A
// list with an unknown part stays unknown.
Explanation explain_worst_of(std::string_view reasons, const JobReport& job, Explanation unknown) {
  std::optional<Explanation> told;
  for (const std::string& reason : split(reasons, ',')) {
    Explanation said = explain_reason(reason, job);
    if (said.outlook == Outlook::unknown) return unknown;
    if (!told ||
        (told->outlook == Outlook::starts_by_itself && said.outlook != Outlook::starts_by_itself))
      told = std::move(said);
  }
  return told ? std::move(*told) : std::move(unknown);
}

// Returns whether the job is held. Slurm starts no job of priority 0, whatever its reason says. The
// states listed here are holds, too.
bool is_held(const JobReport& job) {
  return job.priority == 0 || job.state.name == "REQUEUE_HOLD" ||
         job.state.name == "SPECIAL_EXIT" || job.state.name == "RESV_DEL_HOLD";
}

// Explains --requeue=expedite of 25.11. Once the epilogs on the nodes have run, slurmctld holds the
// job if no epilog has failed (batch_requeue_fini).
Explanation explain_expedited(const JobReport& job) {
  return {
      Outlook::unknown,
      "the last run failed, and Slurm waits for the epilogs of the nodes: if an epilog fails the "
      "job starts again, else Slurm holds the job",
      {filled("scontrol release {id} once the job is held", job)}};
}

void say_held(const JobReport& job, Explanation& said) {
  said.outlook = Outlook::held;
  said.why += "; the job is held";
  said.advice.push_back(filled("scontrol release {id}", job));
}

}  // namespace

std::string_view outlook_word(Outlook outlook) {
  switch (outlook) {
    case Outlook::starts_by_itself:
      return "starts-by-itself";
    case Outlook::held:
      return "held";
    case Outlook::never:
      return "never";
    case Outlook::needs_site:
      return "needs-site";
    case Outlook::unknown:
      return "unknown";
    case Outlook::runs:
      return "runs";
    case Outlook::ended:
      return "ended";
  }
  return "";
}

std::vector<OutOfService> failed_to_launch(const JobReport& job, const Surroundings& around) {
  constexpr std::int64_t kNear = 300;  // seconds between the failure and the requeue
  std::vector<OutOfService> all;
  std::vector<OutOfService> near;
  for (const OutOfService& each : around.out) {
    const std::string reason = to_lower(each.reason);
    if (reason.find("prolog") == std::string::npos && reason.find("launch") == std::string::npos)
      continue;
    all.push_back(each);
    if (each.since && job.submitted && std::abs(*each.since - *job.submitted) <= kNear)
      near.push_back(each);
  }
  return near.empty() ? all : near;
}

Explanation explain_pending(const JobReport& job, const Surroundings& around) {
  // A comma may be part of a reason's name, so try the whole text first.
  std::string reason = normalized(job.reason);
  if (job.state.name == "REQUEUE_HOLD" && reason == "None") reason = "job_requeued_in_held_state";
  Explanation said = explain_reason(reason, job);
  if (said.outlook == Outlook::unknown && said.advice.empty())
    said = explain_worst_of(reason, job, std::move(said));
  if (job.state.name == "EXPEDITING" && said.outlook == Outlook::starts_by_itself)
    said = explain_expedited(job);
  if (is_held(job) &&
      (said.outlook == Outlook::starts_by_itself || said.outlook == Outlook::unknown))
    say_held(job, said);
  if (said.outlook == Outlook::unknown && said.advice.empty())
    said.advice.emplace_back("man squeue, JOB REASON CODES, may tell more");
  add_numbers(reason, job, around, said);
  add_after_requeue(reason, job, said);
  if (reason == "launch_failed_requeued_held") add_failed_launch(job, around, said);
  add_out_of_service(reason, around, said);
  return said;
}

}  // namespace lockstep::slurm
