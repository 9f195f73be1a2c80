#include "jobs/here/local_job.h"

#include "base/text.h"
#include "io/fd.h"
#include "jobs/profile_files.h"
#include "proc/signals.h"
#include "status/job_socket.h"
#include "status/profile_ask.h"
#include "status/profile_trace.h"

#include <fmt/core.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace lockstep::jobs::here {
namespace {

constexpr std::string_view kHead = "pid-";
constexpr const char* kPlace = "this machine";
constexpr int kLookMs = 100;
// Both times are counted from now, so a clock that is set moves them apart.
constexpr std::int64_t kClockStepMs = 5'000;

Error gone(const KnownJob& job) {
  return {
      .code = Errc::not_found,
      .message = fmt::format("{} no longer runs", job.id),
      .hint = "a run on this machine leaves no record; --report FILE writes a report at the end"};
}

// A pidfd refers to the process itself. Its number may belong to another process by the next call.
Result<io::Fd> open_process(pid_t pid) {
  io::Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return fail_sys("open process " + std::to_string(pid), errno);
  return process;
}

// Returns the signal that stopped the waiting; 0: the process has ended.
int await_end(const io::Fd& process) {
  pollfd end{.fd = process.get(), .events = POLLIN, .revents = 0};
  // Look often: stop signals are blocked and only stay pending, so poll() does not return for a
  // signal.
  while (poll(&end, 1, kLookMs) <= 0)
    if (const int number = proc::take_stop_signal({}); number != 0) return number;
  return 0;
}

}  // namespace

std::string local_id(pid_t pid) {
  return std::string(kHead) + std::to_string(pid);
}

KnownJob known_job(const LocalRun& run) {
  return {.id = local_id(run.pid),
          .name = "-",
          .place = kPlace,
          .command = run.command,
          .created_ms = run.started_ms};
}

bool is_local_job(const KnownJob& job) {
  return job.place == kPlace && job.id.starts_with(kHead);
}

bool is_local_id(std::string_view word) {
  return word.starts_with(kHead) && parse_int(word.substr(kHead.size())).value_or(0) > 0;
}

std::optional<KnownJob> find_local_job(std::string_view word) {
  if (!is_local_id(word)) return std::nullopt;
  const auto run = find_run(static_cast<pid_t>(*parse_int(word.substr(kHead.size()))));
  return run ? std::optional(known_job(*run)) : std::nullopt;
}

bool runs_script(const LocalRun& run, std::string_view word) {
  const auto is_it = [word](std::string_view each) {
    return each.substr(each.rfind('/') + 1) == word;
  };
  return !word.empty() && std::any_of(run.words.begin(), run.words.end(), is_it);
}

Result<std::optional<KnownJob>> find_by_script(std::string_view word) {
  std::vector<KnownJob> found;
  for (const LocalRun& run : local_runs())
    if (runs_script(run, word)) found.push_back(known_job(run));
  if (found.empty()) return std::optional<KnownJob>();
  if (found.size() == 1) return std::optional(std::move(found.front()));
  std::vector<std::string> ids;
  ids.reserve(found.size());
  for (const KnownJob& job : found)
    ids.push_back(job.id);
  return fail(Errc::invalid_input,
              fmt::format("{} runs on this machine have {} in their command lines: {}",
                          found.size(), printable(word), join(ids, ", ")),
              "name one by its id");
}

pid_t LocalJob::pid() const {
  return static_cast<pid_t>(parse_int(record_.id.substr(kHead.size())).value_or(0));
}

bool LocalJob::runs() const {
  const auto run = find_run(pid());
  // The start time tells the run from a later process with the same number.
  return run && std::abs(run->started_ms - record_.created_ms) < kClockStepMs;
}

Result<JobStatus> LocalJob::status() {
  // Only the parent of a process learns the exit code. After the end, nothing more is known here.
  return JobStatus{.state = runs() ? JobState::running : JobState::lost};
}

Result<Explanation> LocalJob::why() {
  LOCKSTEP_TRY_ASSIGN(const JobStatus now, status());
  // The output of such a run goes to its own terminal.
  Explanation said =
      explain_job(record_, now, nullptr,
                  now.is_over() ? "the run has ended, and left no record"
                                : fmt::format("lockstep wait {} waits for the end", record_.id));
  if (now.is_over()) return said;
  return with_looks(std::move(said), looks({}).value_or(std::vector<looks::Answer>()));
}

Result<std::vector<looks::Answer>> LocalJob::looks(const looks::Question& question) {
  std::string target = "/why";
  if (const std::string words = looks::print_question(question); !words.empty())
    target += "?" + words;
  std::vector<looks::Answer> answers;
  for (const std::string& text :
       status::ask_agents({.pid = pid(), .job = {}}, target, std::chrono::seconds(5)))
    if (auto answer = looks::read_answer(text)) answers.push_back(std::move(*answer));
  return answers;
}

Result<std::vector<looks::NodeRows>> LocalJob::ranks() {
  std::vector<looks::NodeRows> nodes;
  for (const std::string& text :
       status::ask_agents({.pid = pid(), .job = {}}, "/ranks?all", std::chrono::seconds(5)))
    if (auto rows = looks::read_rows(text)) nodes.push_back(std::move(*rows));
  return nodes;
}

Result<std::vector<status::EventAnswer>> LocalJob::events(std::int64_t after) {
  std::vector<status::EventAnswer> answers;
  for (const std::string& text :
       status::ask_agents({.pid = pid(), .job = {}}, fmt::format("/events?after={}", after),
                          std::chrono::seconds(5)))
    if (auto answer = status::read_event_answer(text)) answers.push_back(std::move(*answer));
  return answers;
}

Result<std::vector<PageThere>> LocalJob::page(int node) {
  std::vector<PageThere> found;
  for (const std::string& text : status::ask_agents(
           {.pid = pid(), .job = {}}, fmt::format("/page?node={}", node), std::chrono::seconds(5)))
    if (auto answer = page::read_page_answer(text)) found.push_back({.page = std::move(*answer)});
  return found;
}

Result<ProfileAnswers> LocalJob::profile(const ProfileRequest& request) {
  ProfileAnswers answers;
  for (const std::string& text :
       status::ask_about_profile({.pid = pid(), .job = {}}, request.query, std::chrono::seconds(5)))
    if (auto says = status::read_profile_answer(text))
      answers.agents.push_back({.says = std::move(*says)});
  return answers;
}

Status LocalJob::bring_trace(const TraceThere& trace, const std::string& to,
                             const std::function<Status()>& meanwhile) {
  const auto from = status::finished_trace(trace.folder, trace.profile, trace.rank);
  if (!from) return fail(Errc::not_found, "the trace is no longer there");
  return take_trace(*from, to, meanwhile);
}

Result<Followed> LocalJob::follow(const FollowOptions& options) {
  if (options.print)
    return fail(
        Errc::invalid_input,
        fmt::format("the output of {} goes to the terminal where the run was started", record_.id),
        "lockstep run --log-dir DIR keeps the output in files");
  Followed followed;
  if (auto process = open_process(pid()); process && runs()) followed.signal = await_end(*process);
  // A signal ends only the waiting. The run goes on.
  followed.left = followed.signal != 0;
  return followed;
}

Result<JobStatus> LocalJob::cancel() {
  // Open the process before the check: the signal cannot reach another process then.
  LOCKSTEP_TRY_ASSIGN(const io::Fd process, open_process(pid()));
  if (!runs()) return Failure(gone(record_));
  if (syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0) != 0)
    return fail_sys("end process " + std::to_string(pid()), errno);
  if (const int number = await_end(process); number != 0)
    return Failure({Errc::canceled, "the end of the run was not awaited", {}, number});
  return JobStatus{.state = JobState::canceled, .canceled = true, .by_person = true};
}

Result<Resumed> LocalJob::resume(const std::vector<std::string>& env) {
  (void)env;
  return fail(Errc::invalid_input, record_.id + " runs on this machine and has no parts to resume",
              "start the job again with lockstep run");
}

}  // namespace lockstep::jobs::here
