#include "slurm/why_text.h"

#include "base/duration_text.h"
#include "base/text.h"
#include "slurm/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep::slurm {
namespace {

// Slurm plans jobs without a time limit for a year. A start behind such a job tells nothing.
constexpr std::int64_t kNoTelling = std::int64_t{300} * 24 * 3600;

// Adds a line of printable characters: names and reasons come from other users, and must not
// control the terminal.
void add_line(std::string& text, std::string_view title, std::string_view line) {
  constexpr std::size_t kMost = 4000;
  text += fmt::format("  {:<8}{}\n", title, printable(line, kMost));
}

// Prints Slurm's own plan for the start.
std::string start_line(const JobReport& job, std::int64_t now) {
  if (!job.start) return "Slurm has not planned it yet";
  if (*job.start > now + kNoTelling) return "Slurm cannot tell: an earlier job has no time limit";
  std::string line = *job.start <= now ? "expected any moment"
                                       : fmt::format("expected {}, in {}", moment_text(*job.start),
                                                     about_text(*job.start - now));
  if (!job.held_nodes.empty()) line += " on " + printable(job.held_nodes);
  return line;
}

// Repeats the request, because the reason often lies in it.
std::string asked_for(const JobReport& job) {
  std::vector<std::string> parts;
  if (job.node_count) parts.push_back(nodes_text(*job.node_count));
  if (!job.gpus.empty()) parts.push_back(printable(job.gpus) + " on each");
  parts.push_back(job.time_limit ? "time " + duration_text(*job.time_limit) : "no time limit");
  if (!job.partition.empty()) parts.push_back("partition " + printable(job.partition));
  if (!job.qos.empty()) parts.push_back("QOS " + printable(job.qos));
  return join(parts, ", ");
}

std::string head_line(const Explained& each) {
  const JobReport& job = each.job;
  std::string state = job.state.name;
  if (!job.reason.empty()) state += " (" + job.reason + ")";
  return fmt::format("job {} {} of {}: {}\n", printable(join(each.ids, ", ")),
                     printable(job.name, 60), printable(job.user), printable(state));
}

template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json facts_json(const std::vector<Fact>& facts) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::object();
  for (const Fact& fact : facts)
    lines[fact.title].push_back(fact.line);
  return lines;
}

nlohmann::ordered_json json_of(const Explained& each) {
  const JobReport& job = each.job;
  const bool waits = job.state.phase == JobPhase::waiting;
  return {{"ids", each.ids},
          {"job", job.job},
          {"name", printable(job.name)},
          {"user", printable(job.user)},
          {"state", job.state.name},
          {"reason", printable(job.reason)},
          {"outlook", outlook_word(each.said.outlook)},
          {"why", each.said.why},
          {"advice", each.said.advice},
          {"facts", facts_json(each.facts)},
          {"expected_start", waits ? or_null(job.start) : nlohmann::ordered_json()},
          {"started", waits ? nlohmann::ordered_json() : or_null(job.start)},
          {"ended", job.state.ended() ? or_null(job.end) : nlohmann::ordered_json()},
          {"submitted", or_null(job.submitted)},
          {"exit_code", or_null(job.exit_code)},
          {"signal", or_null(job.signal)},
          {"restarts", or_null(job.restarts)},
          {"nodes", printable(waits ? job.held_nodes : job.nodes)},
          {"output", printable(job.output)}};
}

}  // namespace

std::vector<Explained> explain_all(const std::vector<JobReport>& jobs, const Surroundings& around) {
  std::vector<Explained> all;
  for (const JobReport& job : jobs) {
    Explained made{job, explain(job, around), {job.id}, {}};
    const auto same = std::find_if(all.begin(), all.end(), [&](const Explained& each) {
      return each.job.state == job.state && each.job.job == job.job &&
             each.said.why == made.said.why;
    });
    if (same == all.end())
      all.push_back(std::move(made));
    else
      same->ids.push_back(job.id);
  }
  return all;
}

std::string why_text(const std::vector<Explained>& all, std::int64_t now) {
  std::string text;
  for (const Explained& each : all) {
    text += head_line(each);
    add_line(text, "why", each.said.why);
    // Print equal titles of consecutive facts once.
    const std::string* title = nullptr;
    for (const Fact& fact : each.facts) {
      add_line(text, title != nullptr && *title == fact.title ? "" : fact.title, fact.line);
      title = &fact.title;
    }
    const bool waits = each.job.state.phase == JobPhase::waiting;
    if (waits) add_line(text, "asks", asked_for(each.job));
    if (each.said.outlook == Outlook::starts_by_itself)
      add_line(text, "start", start_line(each.job, now));
    if (waits && each.said.outlook == Outlook::unknown)
      add_line(text, "start",
               each.job.start ? start_line(each.job, now)
                              : "unknown: Slurm does not say whether the job starts by itself");
    if (each.said.outlook == Outlook::never)
      add_line(text, "start", "never, unless the job is changed");
    if (each.said.outlook == Outlook::held)
      add_line(text, "start", "not before the job is released");
    if (const int restarts = each.job.restarts.value_or(0); restarts > 0)
      add_line(text, "before",
               fmt::format("Slurm has requeued the job {}",
                           restarts == 1 ? "once" : fmt::format("{} times", restarts)));
    bool first = true;
    for (const std::string& line : each.said.advice)
      add_line(text, std::exchange(first, false) ? "do" : "", line);
  }
  return text;
}

nlohmann::ordered_json why_json(const std::vector<Explained>& all) {
  nlohmann::ordered_json jobs = nlohmann::ordered_json::array();
  for (const Explained& each : all)
    jobs.push_back(json_of(each));
  return {{"jobs", std::move(jobs)}};
}

}  // namespace lockstep::slurm
