#include "slurm/pending_reason.h"

#include "base/text.h"
#include "slurm/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::slurm {
namespace {

struct Row {
  std::string_view reason;  // as scontrol writes it; a star: whatever follows
  Outlook outlook;
  std::string_view why;
  std::string_view advice;
};

// In the texts: {id}, {partition}, {account}, {qos}, {nodes} (how many it asks for), {time},
// {detail} (what Slurm writes behind the reason), {dependency}, {eligible}.
constexpr std::array kRows = {
    Row{"None", Outlook::starts_by_itself, "Slurm has not looked at it yet", ""},
    Row{"WaitingForScheduling", Outlook::starts_by_itself, "Slurm has not looked at it yet", ""},
    Row{"Resources", Outlook::starts_by_itself,
        "it is next, but what it asks for is in use by other jobs",
        "a shorter --time or fewer nodes may fit into a gap sooner"},
    Row{"Priority", Outlook::starts_by_itself,
        "jobs of higher priority wait before it in partition {partition}",
        "a shorter --time or fewer nodes may fit into a gap sooner (sprio -j {id} shows what its "
        "priority is made of)"},
    Row{"Nodes_required_for_job_are_DOWN*", Outlook::starts_by_itself,
        "there are not enough free nodes: some that it could use are down, drained or kept for "
        "jobs of higher priority",
        "fewer nodes or another partition would start it sooner"},
    Row{"Required_node_not_available*", Outlook::needs_site,
        "a node that it must have is down, drained or reserved",
        "leave out --nodelist, or name other nodes"},
    Row{"ReqNodeNotAvail*Reserved_for_maintenance", Outlook::starts_by_itself,
        "its nodes are reserved for maintenance before the job could end",
        "a --time that ends before the maintenance starts it now (scontrol show reservation says "
        "when)"},
    Row{"ReqNodeNotAvail*", Outlook::needs_site,
        "a node that it must have is not available{detail}",
        "leave out --nodelist, or name other nodes; a --time that ends before a reservation may "
        "help, too"},
    Row{"NodeDown", Outlook::needs_site, "a node that it must have is down",
        "leave out --nodelist, or name other nodes"},
    Row{"Dependency", Outlook::starts_by_itself, "it waits for other jobs: {dependency}", ""},
    Row{"DependencyNeverSatisfied", Outlook::never,
        "it waits for another job to end in a way in which that did not end: {dependency}",
        "scancel {id} and send it again, or scontrol update JobId={id} Dependency= to start it "
        "without"},
    Row{"BeginTime", Outlook::starts_by_itself, "it may not start before {eligible}",
        "scontrol update JobId={id} StartTime=now starts it earlier"},
    Row{"JobHeldUser", Outlook::held, "its owner holds it", "scontrol release {id}"},
    Row{"JobHeldAdmin", Outlook::needs_site, "an administrator holds it",
        "ask those who run the cluster"},
    Row{"JobHoldMaxRequeue", Outlook::held,
        "Slurm holds it because its start failed too often (MaxBatchRequeue)",
        "see why it did not start, then scontrol release {id}"},
    Row{"MaxRequeue*", Outlook::held, "Slurm holds it because it was put back too often",
        "see why it did not start, then scontrol release {id}"},
    Row{"launch_failed_requeued_held", Outlook::held,
        "a node could not start it, as a rule because a check before jobs (prolog) failed there; "
        "Slurm holds it now",
        ""},
    Row{"job_requeued_in_held_state", Outlook::held, "it was put back to the queue and is held",
        "scontrol release {id}"},
    Row{"Prolog", Outlook::starts_by_itself, "the cluster prepares its start (PrologSlurmctld)",
        ""},
    Row{"Cleaning", Outlook::starts_by_itself,
        "its last run is still being cleaned up on its nodes", ""},
    Row{"PartitionNodeLimit", Outlook::never,
        "it asks for {nodes}, which partition {partition} does not allow or have",
        "ask for fewer nodes, or name another partition (-p)"},
    Row{"PartitionTimeLimit", Outlook::never,
        "it asks for {time}, longer than partition {partition} allows",
        "scontrol update JobId={id} TimeLimit=..., or name another partition (-p)"},
    Row{"PartitionDown", Outlook::needs_site, "partition {partition} is down: it starts no jobs",
        "name another partition (-p), or wait"},
    Row{"PartitionInactive", Outlook::needs_site,
        "partition {partition} is inactive: it takes and starts no jobs",
        "name another partition (-p), or wait"},
    Row{"PartitionConfig", Outlook::never,
        "what it asks for does not go with the settings of partition {partition}",
        "scontrol show partition {partition} shows them"},
    Row{"MaxMemPerLimit", Outlook::never,
        "it asks for more memory than partition {partition} allows on a node or CPU",
        "ask for less with --mem"},
    Row{"BadConstraints", Outlook::never, "no node of the cluster has what it asks for",
        "see --constraint, --gres, --mem and --cpus-per-task; sinfo -o '%P %c %m %G %f' shows what "
        "nodes have"},
    Row{"Constraints", Outlook::never, "no node of the cluster has what it asks for",
        "see --constraint, --gres, --mem and --cpus-per-task; sinfo -o '%P %c %m %G %f' shows what "
        "nodes have"},
    Row{"Reservation", Outlook::starts_by_itself,
        "the reservation that it is for has not begun, or is in use",
        "scontrol show reservation says when"},
    Row{"ReservationDeleted", Outlook::never, "the reservation that it was for is gone",
        "scontrol update JobId={id} ReservationName= starts it without"},
    Row{"ReservationInvalid", Outlook::never, "the reservation that it asks for can't be used",
        "scontrol update JobId={id} ReservationName= starts it without"},
    Row{"Licenses", Outlook::starts_by_itself, "licenses that it asks for are in use",
        "scontrol show licenses shows them"},
    Row{"JobArrayTaskLimit", Outlook::starts_by_itself,
        "as many tasks of its array run as it allows at once (the number behind % of --array)",
        "scontrol update ArrayTaskThrottle=N JobId={id} allows more"},
    Row{"InvalidAccount", Outlook::never, "there is no account {account}, or you may not use it",
        "sacctmgr show associations user=$USER shows yours; then give -A"},
    Row{"AccountNotAllowed", Outlook::never, "partition {partition} is not for account {account}",
        "name another partition (-p) or account (-A)"},
    Row{"Job's_account_not_permitted*", Outlook::never,
        "partition {partition} is not for account {account}",
        "name another partition (-p) or account (-A)"},
    Row{"InvalidQOS", Outlook::never, "there is no QOS {qos}, or you may not use it",
        "sacctmgr show associations user=$USER format=account,qos shows yours; then give -q"},
    Row{"QOSNotAllowed", Outlook::never,
        "partition {partition} or the account does not allow QOS {qos}",
        "name another QOS (-q) or partition (-p)"},
    Row{"Job's_QOS_not_permitted*", Outlook::never,
        "partition {partition} does not allow QOS {qos}",
        "name another QOS (-q) or partition (-p)"},
    Row{"QOSUsageThreshold", Outlook::starts_by_itself,
        "your share of the cluster is used up for now (QOS {qos})",
        "wait until it recovers, or name another QOS (-q)"},
    Row{"AccountingPolicy", Outlook::starts_by_itself, "a limit of the account or QOS is reached",
        ""},
    Row{"PowerNotAvail", Outlook::starts_by_itself,
        "there is not enough electrical power for its nodes now", ""},
    Row{"PowerReserved", Outlook::starts_by_itself, "the electrical power is reserved", ""},
    Row{"BurstBuffer*", Outlook::starts_by_itself, "its data is not in the burst buffer yet", ""},
    Row{"FedJobLock", Outlook::starts_by_itself,
        "clusters of the federation agree on where it starts", ""},
    Row{"FrontEndDown", Outlook::needs_site, "the front end of the cluster is down", ""},
    Row{"SystemFailure", Outlook::needs_site, "Slurm, a file system or the network failed",
        "ask those who run the cluster"},
    Row{"SchedDefer", Outlook::never, "it was to start at once, and could not",
        "leave out --immediate"},
    Row{"InactiveLimit", Outlook::never, "its client went away before it began",
        "send it with sbatch"},
    Row{"JobLaunchFailure", Outlook::needs_site, "it could not be started on its nodes", ""},
};

std::string normalized(std::string_view reason) {
  std::string text(strip(reason));
  std::replace(text.begin(), text.end(), ' ', '_');
  return text.empty() ? "None" : text;
}

bool matches(std::string_view pattern, std::string_view reason) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == reason;
  const std::string_view end = pattern.substr(star + 1);
  return reason.size() + 1 >= pattern.size() && reason.starts_with(pattern.substr(0, star)) &&
         reason.ends_with(end);
}

// "ReqNodeNotAvail,_UnavailableNodes:n[2-3]" -> ": n[2-3]".
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

std::string filled(std::string_view text, const JobStatus& job) {
  std::string out(text);
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
  return out;
}

const Partition* partition_of(const JobStatus& job, const Surroundings& around) {
  const auto names = split(job.partition, ',');
  const auto is_its = [&](const Partition& each) {
    return std::find(names.begin(), names.end(), each.name) != names.end();
  };
  const auto found = std::find_if(around.partitions.begin(), around.partitions.end(), is_its);
  return found == around.partitions.end() ? nullptr : &*found;
}

// The partition's own numbers, behind what the row says.
void add_numbers(std::string_view reason, const JobStatus& job, const Surroundings& around,
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

// Nodes that are out of service are worth a word where a job waits for nodes.
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

// A failing check before jobs holds a job for ever; its node is named and how to go on without it.
void add_failed_launch(const JobStatus& job, const Surroundings& around, Explanation& said) {
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
  said.advice.push_back(fmt::format("tell those who run the cluster about {}", list));
}

// BeginTime after a requeue: nobody asked for it.
void add_after_requeue(std::string_view reason, const JobStatus& job, Explanation& said) {
  if (reason != "BeginTime" || job.restarts.value_or(0) == 0) return;
  said.why += ": Slurm waits after putting a job back to the queue, two minutes as a rule";
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
    case Outlook::runs:
      return "runs";
    case Outlook::ended:
      return "ended";
  }
  return "";
}

std::vector<OutOfService> failed_to_launch(const JobStatus& job, const Surroundings& around) {
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

Explanation explain_pending(const JobStatus& job, const Surroundings& around) {
  std::string reason = normalized(job.reason);
  if (job.state.name == "REQUEUE_HOLD" && reason == "None") reason = "job_requeued_in_held_state";
  Explanation said;
  const auto row = std::find_if(kRows.begin(), kRows.end(),
                                [&](const Row& each) { return matches(each.reason, reason); });
  if (row != kRows.end()) {
    said.outlook = row->outlook;
    said.why = filled(row->why, job);
    if (!row->advice.empty()) said.advice.push_back(filled(row->advice, job));
  } else if (const std::string words = limit_words(reason); !words.empty()) {
    // A limit of one job's is never met by waiting.
    const bool of_a_job = reason.find("PerJob") != std::string::npos ||
                          reason.find("PerNode") != std::string::npos ||
                          reason.find("QOSMin") != std::string::npos;
    said.outlook = of_a_job ? Outlook::never : Outlook::starts_by_itself;
    said.why = words;
    said.advice.push_back(
        of_a_job ? "ask for what the limit allows"
                 : "it starts when other jobs have ended; asking for less may start it sooner");
    said.advice.push_back(
        filled(reason.starts_with("Assoc")
                   ? "sacctmgr show associations account={account} shows the limits"
                   : "sacctmgr show qos {qos} shows the limits",
               job));
  } else {
    said.why = fmt::format("Slurm says {}", printable(job.reason));
    said.advice.emplace_back("man squeue, JOB REASON CODES, may tell more");
  }
  add_numbers(reason, job, around, said);
  add_after_requeue(reason, job, said);
  if (reason == "launch_failed_requeued_held") add_failed_launch(job, around, said);
  add_out_of_service(reason, around, said);
  return said;
}

}  // namespace lockstep::slurm
