#include "slurm/job_ending.h"

#include "base/duration_text.h"
#include "base/exit_codes.h"
#include "base/text.h"
#include "proc/signals.h"
#include "slurm/words.h"

#include <fmt/core.h>

#include <csignal>

namespace lockstep::slurm {
namespace {

// slurmd reports signal 53 for a job whose working folder or output file it cannot open.
constexpr int kNoFolder = 53;

std::string on_nodes(const JobReport& job) {
  return job.nodes.empty() ? "" : fmt::format(" on {}", printable(job.nodes));
}

std::string ran_for(const JobReport& job) {
  if (!job.start || !job.end || *job.end < *job.start) return "";
  return fmt::format(" after {}", about_text(*job.end - *job.start));
}

void advise_output(const JobReport& job, Explanation& said) {
  if (!job.output.empty() && job.output != "/dev/null")
    said.advice.push_back("the job's output: " + printable(job.output));
}

// Explains FAILED by the batch script's exit code or signal.
void explain_failure(const JobReport& job, Explanation& said) {
  const int code = job.exit_code.value_or(0);
  const int signal = job.signal.value_or(0);
  // Slurm fails such a job without a run, with the reason of a waiting job.
  if (job.reason == "BadConstraints" || job.reason == "Constraints") {
    said = explain_pending(job, {});
    return;
  }
  if (signal == kNoFolder) {
    said.why =
        fmt::format("the folder of the job's output or the working folder {}does not exist{}",
                    job.folder.empty() ? "" : printable(job.folder) + " ", on_nodes(job));
    said.advice.emplace_back(
        "make the folder on a file system that all nodes see, before submitting");
    if (!job.output.empty())
      said.advice.push_back("the job's output should be " + printable(job.output));
    return;
  }
  if (signal != 0) {
    said.why =
        fmt::format("the script was killed by {}{}", proc::signal_name(signal), ran_for(job));
    // Shells report a program killed by signal N as 128 + N.
  } else if (code > 128 && code < 128 + SIGRTMAX) {
    said.why = fmt::format("the script ended with code {}: a program was killed by {}{}", code,
                           proc::signal_name(code - 128), ran_for(job));
  } else if (code == kExitNotFound || code == kExitCannotRun) {
    said.why = fmt::format("the script ended with code {}: a command {}", code,
                           code == kExitNotFound ? "was not found" : "could not be run");
    said.advice.emplace_back(
        "not every node has the login host's PATH: load modules and "
        "environments in the script");
  } else if (code != 0) {
    said.why = fmt::format("the script ended with code {}{}", code, ran_for(job));
  } else if (job.reason == "JobLaunchFailure") {
    said.why = "the job could not be started" + on_nodes(job);
  } else {
    said.why = "the job failed";
  }
  // The kernel's out-of-memory killer sends SIGKILL, too.
  if (signal == SIGKILL || code == 128 + SIGKILL)
    said.advice.emplace_back(
        "SIGKILL is often the machine's memory: ask for more with --mem, or look "
        "for oom in the node's log");
  advise_output(job, said);
}

// Adds the partition's limit, because a longer --time may not be possible there.
void explain_timeout(const JobReport& job, const Surroundings& around, Explanation& said) {
  said.why = fmt::format("the time limit {}was over",
                         job.time_limit ? "of " + duration_text(*job.time_limit) + " " : "");
  std::string most;
  for (const Partition& each : around.partitions)
    if (each.name == job.partition && each.max_time)
      most = fmt::format(" (partition {} allows {})", each.name, duration_text(*each.max_time));
  said.advice.push_back("ask for a longer --time" + most +
                        ", or save checkpoints and have the job requeued before the limit");
  advise_output(job, said);
}

// Only sacct knows who canceled, and many clusters have no accounting.
void explain_cancelled(const JobReport& job, Explanation& said) {
  const std::string& by = job.state.cancelled_by;
  // sacct gives a user id or a name.
  const std::string whom = by.empty()       ? ""
                           : by == "0"      ? " by root"
                           : by == job.user ? " by its owner"
                                            : fmt::format(" by user {}", printable(by));
  if (job.reason == "DependencyNeverSatisfied") {
    said.why = "the job was canceled: the dependency can no longer be satisfied";
  } else {
    said.why = fmt::format("the job was canceled{}{}", whom,
                           job.start ? ran_for(job) : " before its start");
  }
  if (by.empty()) said.advice.emplace_back("only Slurm's accounting would name the person");
  advise_output(job, said);
}

// Explains each end state of Slurm. Unknown ones are explained by exit code and signal.
void explain_ended(const JobReport& job, const Surroundings& around, Explanation& said) {
  const std::string& state = job.state.name;
  if (state == "COMPLETED") {
    said.why = fmt::format("the job succeeded{}", ran_for(job));
  } else if (state == "TIMEOUT") {
    explain_timeout(job, around, said);
  } else if (state == "CANCELLED") {
    explain_cancelled(job, said);
  } else if (state == "OUT_OF_MEMORY") {
    said.why = fmt::format("the job used up the memory granted on a node{}", on_nodes(job));
    said.advice.emplace_back(
        "ask for more with --mem (of a node) or --mem-per-cpu, or use less: fewer "
        "data loader workers, smaller batches");
    advise_output(job, said);
  } else if (state == "NODE_FAIL") {
    said.why = fmt::format("a node of the job failed{}", on_nodes(job));
    said.advice.emplace_back(
        "submit the job again, with -x and the node's name (sinfo -R); --requeue lets Slurm do so, "
        "and a spare node (lockstep submit --spare 1) keeps the job running");
  } else if (state == "PREEMPTED") {
    said.why = "a job of higher priority took the nodes";
    said.advice.emplace_back("--requeue queues the job again; checkpoints save the work");
  } else if (state == "DEADLINE") {
    said.why = "the job could not end before the --deadline";
  } else if (state == "BOOT_FAIL") {
    said.why = fmt::format("a node of the job did not boot{}", on_nodes(job));
    said.advice.emplace_back("submit the job again, with -x and the node's name (sinfo -R)");
  } else if (state == "REVOKED") {
    said.why = "the job runs in another cluster of the federation";
  } else {
    explain_failure(job, said);
  }
  said.outlook = Outlook::ended;
}

}  // namespace

Explanation explain_run(const JobReport& job, const Surroundings& around) {
  Explanation said{.outlook = Outlook::runs, .why = {}, .advice = {}};
  const std::string since = job.start && around.now >= *job.start
                                ? fmt::format(" for {}", about_text(around.now - *job.start))
                                : "";
  if (job.state.phase == JobPhase::ended) {
    explain_ended(job, around, said);
  } else if (job.state.phase == JobPhase::ending) {
    said.why = fmt::format(
        "the job's programs have ended or are being killed{}; Slurm waits until the "
        "nodes are free",
        on_nodes(job));
    said.advice.emplace_back(
        "if this lasts, a process cannot be killed (a file system that does not answer, "
        "a driver): tell the cluster's administrators");
  } else if (job.state.name == "CONFIGURING" || job.state.name == "POWER_UP_NODE") {
    said.why = fmt::format("the nodes are being prepared or booted{}", on_nodes(job));
  } else if (job.state.name == "SUSPENDED" || job.state.name == "STOPPED") {
    said.why = fmt::format(
        "the job is stopped{}, usually because another job uses the nodes for now", on_nodes(job));
    said.advice.push_back(fmt::format("scontrol resume {} is for administrators", job.id));
  } else if (job.state.phase == JobPhase::running) {
    said.why = fmt::format("the job runs{}{}", since, on_nodes(job));
    // Without a limit Slurm reports an end a year ahead.
    if (job.end && around.now != 0 && *job.end > around.now && job.time_limit)
      said.why += fmt::format("; the time limit ends in {}", about_text(*job.end - around.now));
  } else {
    said.why = fmt::format("Slurm calls its state {}", printable(job.state.name));
    said.outlook = Outlook::unknown;
  }
  return said;
}

Explanation explain(const JobReport& job, const Surroundings& around) {
  return job.state.phase == JobPhase::waiting ? explain_pending(job, around)
                                              : explain_run(job, around);
}

}  // namespace lockstep::slurm
