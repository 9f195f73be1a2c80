#include "slurm/scontrol_command.h"

#include "base/text.h"
#include "slurm/fields.h"
#include "slurm/times.h"

#include <algorithm>
#include <utility>

namespace lockstep::slurm {
namespace {

// Returns the line behind "Key=". The space in front keeps "Id=" from matching "JobId=".
std::string_view behind(std::string_view line, std::string_view key) {
  const std::string sought = std::string(key) + "=";
  if (line.starts_with(sought)) return line.substr(sought.size());
  const std::size_t at = line.find(" " + sought);
  return at == std::string_view::npos ? std::string_view() : line.substr(at + 1 + sought.size());
}

// Returns whether a word like "StdOut=" or "ReqB:S:C:T=" begins here.
bool is_key(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || text[0] < 'A' || text[0] > 'Z') return false;
  std::size_t end = 1;
  while (end < text.size() && (is_letter(text[end]) || text[end] == ':' || text[end] == '/'))
    ++end;
  return end < text.size() && text[end] == '=';
}

// Builds the id that squeue shows: "12", "12_3", "12_[4-9]" or "12+1".
std::string job_id_in(std::string_view line) {
  const std::string own = oneline_value(line, "JobId");
  const std::string array = oneline_value(line, "ArrayJobId");
  const std::string task = oneline_value(line, "ArrayTaskId");
  if (!array.empty() && !task.empty()) {
    // Waiting tasks share a record: ArrayTaskId=4-9.
    const bool one = is_job_id(array + "_" + task);
    return one ? array + "_" + task : array + "_[" + task + "]";
  }
  const std::string het = oneline_value(line, "HetJobId");
  const std::string offset = oneline_value(line, "HetJobOffset");
  return !het.empty() && !offset.empty() ? het + "+" + offset : own;
}

// Reads "3:0" (the script's exit code 3) or "0:9" (signal 9).
void read_exit_code(std::string_view text, JobReport& job) {
  const std::size_t colon = text.find(':');
  if (!job.state.ended() || colon == std::string_view::npos) return;
  job.exit_code = small_number(text.substr(0, colon));
  job.signal = small_number(text.substr(colon + 1));
}

// Reads "4", "2-2" or "1-8": the least number asked for, or the number allocated.
std::optional<int> node_count_in(std::string_view text) {
  return small_number(text.substr(0, text.find('-')));
}

JobReport read_job(std::string_view line) {
  JobReport job;
  // Search behind the job's name. A name is free text and may look like "State=...", while fields
  // in front of it hold nothing chosen by a user.
  const std::size_t name = line.find("JobName=");
  const std::size_t name_end = line.find(" UserId=", name);
  if (name == std::string_view::npos || name_end == std::string_view::npos) return job;
  const std::string_view head = line.substr(0, name);
  const std::string_view rest = line.substr(name_end + 1);
  job.id = job_id_in(head);
  job.job = whole_job(job.id);
  job.name = line.substr(name + 8, name_end - name - 8);
  // Parts of a heterogeneous job have " HetJobIdSet=" behind the name.
  if (!oneline_value(head, "HetJobId").empty())
    job.name.erase(std::min(job.name.rfind(" HetJobIdSet="), job.name.size()));
  const std::string user = oneline_value(rest, "UserId");
  job.user = user.substr(0, user.rfind('('));
  job.state = parse_job_state(oneline_value(rest, "JobState"));
  job.reason = oneline_value(rest, "Reason");
  job.dependency = oneline_value(rest, "Dependency");
  job.partition = oneline_value(rest, "Partition");
  job.account = oneline_value(rest, "Account");
  job.qos = oneline_value(rest, "QOS");
  job.nodes = oneline_value(rest, "NodeList");
  job.held_nodes = oneline_value(rest, "SchedNodeList");
  job.excluded_nodes = oneline_value(rest, "ExcNodeList");
  job.node_count = node_count_in(oneline_value(rest, "NumNodes"));
  job.restarts = small_number(oneline_value(rest, "Restarts"));
  job.priority = parse_int(oneline_value(rest, "Priority"));
  job.time_limit = parse_duration(oneline_value(rest, "TimeLimit"));
  job.submitted = parse_moment(oneline_value(rest, "SubmitTime"));
  job.eligible = parse_moment(oneline_value(rest, "EligibleTime"));
  job.start = parse_moment(oneline_value(rest, "StartTime"));
  job.end = parse_moment(oneline_value(rest, "EndTime"));
  job.resources = oneline_value(rest, "TRES");
  // Newer releases print ReqTRES in place of TRES.
  if (job.resources.empty()) job.resources = oneline_value(rest, "ReqTRES");
  job.gpus = oneline_value(rest, "TresPerNode");
  job.folder = oneline_text(rest, "WorkDir");
  job.output = oneline_text(rest, "StdOut");
  // scontrol expands all patterns but this one, which no one knows before the job runs.
  const std::string first = oneline_value(rest, "BatchHost");
  if (job.output.find("%N") != std::string::npos && first.empty()) job.output.clear();
  replace_all(job.output, "%N", first);
  read_exit_code(oneline_value(rest, "ExitCode"), job);
  return job;
}

}  // namespace

std::string oneline_value(std::string_view line, std::string_view key) {
  const std::string_view rest = behind(line, key);
  return known_text(rest.substr(0, rest.find(' ')));
}

std::string oneline_text(std::string_view line, std::string_view key) {
  const std::string_view rest = behind(line, key);
  std::size_t end = rest.find(' ');
  while (end != std::string_view::npos && !is_key(rest.substr(end + 1)))
    end = rest.find(' ', end + 1);
  return known_text(rest.substr(0, end));
}

std::vector<std::string> scontrol_job_command(const std::string& id) {
  return {"scontrol", "--oneliner", "--all", "show", "job", id};
}

std::vector<JobReport> parse_scontrol_jobs(std::string_view text) {
  std::vector<JobReport> jobs;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with("JobId=")) continue;
    JobReport job = read_job(line);
    if (is_job_id(job.job)) jobs.push_back(std::move(job));
  }
  return jobs;
}

StoppedBy stopped_by(std::string_view line) {
  if (!oneline_value(line, "PreemptTime").empty()) return StoppedBy::preemption;
  const std::string state = oneline_value(line, "JobState");
  // The state of a job that Slurm is ending shows no more than that; the reason may tell the time
  // limit.
  if (state == "TIMEOUT" || oneline_value(line, "Reason") == "TimeLimit")
    return StoppedBy::time_limit;
  return parse_job_state(state).phase == JobPhase::running ? StoppedBy::nobody
                                                           : StoppedBy::somebody;
}

bool queues_again_what_ends_preempted(std::string_view version) {
  // Since 24.05 slurmctld remembers the signal before a preemption (GRACE_PREEMPT), and
  // job_complete() ends such a job as PREEMPTED. Tested with 22.05 and 24.11.
  constexpr std::int64_t kFirst = 2405;
  const auto parts = split(strip(version.substr(version.rfind(' ') + 1)), '.');
  if (parts.size() < 2) return false;
  const auto year = parse_int(parts[0]);
  const auto month = parse_int(parts[1]);
  return year && month && *year >= 0 && *year < 100 && *month >= 1 && *month <= 12 &&
         *year * 100 + *month >= kFirst;
}

}  // namespace lockstep::slurm
