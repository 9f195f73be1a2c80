#include "slurm/own_ending.h"

#include "base/duration_text.h"
#include "base/text.h"
#include "slurm/verdict.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::slurm {
namespace {

// Limits for the terminal: a report may hold long lines and many of them.
constexpr std::size_t kLastWords = 8;
constexpr std::size_t kMostOthers = 16;
constexpr std::size_t kLineLimit = 300;
constexpr std::size_t kTextLimit = 1000;

std::vector<std::string> last_lines(const std::vector<std::string>& all) {
  std::vector<std::string> lines;
  for (std::size_t i = all.size() - std::min(all.size(), kLastWords); i < all.size(); ++i)
    lines.push_back(printable(all[i], kLineLimit));
  return lines;
}

// Returns the last nonempty line: in a Python traceback, the error itself.
std::string last_line(const std::string& text) {
  std::string last;
  for (const std::string& line : split(text, '\n'))
    if (!strip(line).empty()) last = strip(line);
  return printable(last, kLineLimit);
}

std::string how_it_ended(const BlamedFailure& failure) {
  const std::int64_t code = failure.exit_code;
  const std::string signal = printable(failure.signal, kTextLimit);
  if (code >= 0) return fmt::format("exited with {}", code);
  return "was killed by " + (signal.empty() ? fmt::format("signal {}", -code) : signal);
}

// Returns "n1: why"; empty if the node took part.
std::string left_out_line(const std::string& report) {
  const auto read = read_report(report);
  if (!read || read->outcome != Outcome::left_out) return {};
  constexpr std::string_view kBegin = "left out: ";
  std::string_view why = read->reason;
  if (why.starts_with(kBegin)) why.remove_prefix(kBegin.size());
  return fmt::format("{}: {}", read->node, why);
}

// Returns a line for each node excluded from this run. Launches in a user's own script have reports
// of their own, so look there, too.
std::vector<std::string> left_out_lines(const JobFolder& folder, int run) {
  std::vector<std::string> paths = folder.launches();
  paths.push_back(folder.path());
  std::vector<std::string> lines;
  for (const std::string& path : paths)
    for (const std::string& report : JobFolder(path).reports(run))
      if (std::string line = left_out_line(report); !line.empty()) lines.push_back(std::move(line));
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

// Returns how earlier runs ended; empty: none.
std::string before_words(const BatchState& state) {
  std::vector<std::string> causes = state.earlier;
  if (state.stage == Stage::requeued) causes.push_back(state.cause);
  if (causes.empty()) return {};
  return fmt::format("{} ended: {}",
                     causes.size() == 1 ? "one run" : fmt::format("{} runs", causes.size()),
                     printable(join(causes, ", "), kLineLimit));
}

// Returns the ids that a chain has had in Slurm, and how often it may still continue.
std::string chain_in_words(const BatchState& state) {
  if (!state.chain) return {};
  std::vector<std::string> jobs = state.jobs;
  if (!state.next.empty()) jobs.push_back(state.job);
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  std::erase(jobs, std::string(job_now(state)));
  std::string words = jobs.empty() ? "" : "earlier job " + printable(join(jobs, ", ")) + "; ";
  if (*state.chain == 0) return words + "continues after every time limit";
  std::vector<std::string> causes = state.earlier;
  if (state.stage == Stage::requeued) causes.push_back(state.cause);
  const auto used = std::count(causes.begin(), causes.end(), cause_name(Cause::time_limit));
  return words + fmt::format("continued {} of {} times after a time limit", used, *state.chain);
}

// Puts the failed rank and its own error in place of Slurm's exit code.
void tell_culprit(const Culprit& culprit, const std::string& after, Explained& job) {
  job.said.why = fmt::format("rank {} on {} {}{}{}", culprit.rank, culprit.host, culprit.how, after,
                             culprit.message.empty() ? "" : ": " + culprit.message);
  for (const std::string& note : culprit.notes)
    job.facts.push_back({"note", note});
  if (!culprit.log.empty()) job.facts.push_back({"log", culprit.log});
  for (const std::string& line : culprit.last_words)
    job.facts.push_back({"said", line});
  for (const std::string& line : culprit.others)
    job.facts.push_back({"others", line});
}

// Replaces Slurm's explanation where the agents know more. For other causes Slurm's own words stay.
void tell_end(const OwnEnding& own, Explained& job) {
  const BatchState& state = own.state;
  const std::int64_t seconds = (state.ended_ms - state.started_ms) / 1000;
  const std::string after =
      state.started_ms > 0 && seconds >= 0 ? fmt::format(" after {}", about_text(seconds)) : "";
  const auto is = [&](Cause cause) { return state.cause == cause_name(cause); };
  if (is(Cause::worker) && own.culprit) {
    return tell_culprit(*own.culprit, after, job);
  }
  if (is(Cause::worker) || is(Cause::not_started) || is(Cause::watchdog)) {
    job.said.why = printable(state.words, 500) + after;
  } else if (is(Cause::time_limit)) {
    job.said.why = "the time limit was near, and the workers were stopped" + after;
    job.said.advice.insert(job.said.advice.begin(),
                           "ask for a longer --time, or save checkpoints and give --requeue");
  } else if (is(Cause::hang)) {
    job.said.why = printable(state.words, 500) + after;
    job.said.advice.insert(job.said.advice.begin(),
                           "--on-hang restart starts the ranks again, as often as --max-restarts "
                           "allows; --hang-after SECONDS sets how long they may stand still");
  } else if (is(Cause::node_lost)) {
    job.said.why = printable(state.words, 500) + after;
    job.said.advice.insert(job.said.advice.begin(),
                           "--spare 1 lets another node replace a lost node, "
                           "--requeue starts the job again without the lost node");
  }
  for (const std::string& line : own.others)
    job.facts.push_back({"others", line});
}

}  // namespace

std::optional<Culprit> read_culprit(std::string_view report) {
  const auto read = read_agent_report(report);
  // The batch step judges a failure by the same rules.
  if (!read || !judged_report(*read).code) return std::nullopt;
  const BlamedFailure& failure = *read->root_cause;
  return Culprit{.rank = failure.rank.value_or(0),
                 .host = printable(failure.host, kTextLimit),
                 .how = how_it_ended(failure),
                 .message = last_line(failure.message),
                 .log = printable(failure.stderr_log, kTextLimit),
                 .last_words = last_lines(failure.stderr_tail),
                 .notes = last_lines(failure.notes),
                 .others = last_lines(failure.others),
                 .failed_ms = failure.time_ms};
}

static void add_others(const std::string& text, std::vector<std::string>& into) {
  const auto report = read_agent_report(text);
  if (!report) return;
  for (const std::string& line : last_lines(report->others))
    if (into.size() < kMostOthers)
      into.push_back(printable(report->node, kLineLimit) + ": " + line);
}

Result<OwnEnding> read_own_ending(const JobFolder& folder) {
  OwnEnding own;
  LOCKSTEP_TRY_ASSIGN(own.state, folder.state());
  for (const std::string& report : folder.reports(own.state.run)) {
    auto culprit = read_culprit(report);
    // The earliest failure is the cause of the others.
    if (culprit && (!own.culprit || culprit->failed_ms < own.culprit->failed_ms))
      own.culprit = std::move(*culprit);
    add_others(report, own.others);
  }
  own.left_out = left_out_lines(folder, own.state.run);
  return own;
}

// If Slurm says the job still runs or waits, the recorded end is that of an earlier run. While
// Slurm only waits for the nodes to be free, the end is known already.
bool has_ended(const OwnEnding& own, const JobReport& job) {
  const bool is_over = job.state.ended() || job.state.phase == JobPhase::ending;
  return is_over && own.state.stage == Stage::ended;
}

void add_own_words(const OwnEnding& own, Explained& job) {
  if (job_now(own.state) != job.job.job) return;
  if (has_ended(own, job.job)) tell_end(own, job);
  for (const std::string& line : own.left_out)
    job.facts.push_back({"without", line});
  if (const std::string before = before_words(own.state); !before.empty())
    job.facts.push_back({"before", before});
  if (const std::string chain = chain_in_words(own.state); !chain.empty())
    job.facts.push_back({"chain", chain});
}

std::optional<Explained> explain_forgotten(const OwnEnding& own, const std::string& name) {
  if (own.state.stage != Stage::ended) return std::nullopt;
  Explained job;
  job.job.id = job.job.job = own.state.job;
  job.job.name = name;
  job.job.state = parse_job_state(own.state.code == 0 ? "COMPLETED" : "FAILED");
  job.job.exit_code = own.state.code;
  job.job.end = own.state.ended_ms / 1000;
  job.job.start = own.state.started_ms / 1000;
  job.ids = {own.state.job};
  job.said = explain(job.job, {});
  add_own_words(own, job);
  return job;
}

}  // namespace lockstep::slurm
