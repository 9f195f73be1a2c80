// lockstep top: what every rank of a running job does, as a table.
#include "base/text.h"
#include "cli/one_job.h"
#include "cli/subcommand.h"
#include "cli/top_options.h"
#include "cli/top_terminal.h"
#include "cli/top_view.h"
#include "io/own_folders.h"
#include "jobs/here/local_job.h"
#include "jobs/job_book.h"
#include "jobs/places/find_job.h"
#include "proc/signals.h"
#include "top/job_rows.h"
#include "top/screen.h"
#include "top/table.h"

#include <fmt/core.h>

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr double kLeastInterval = 0.1;
constexpr double kMostInterval = 3600;
constexpr std::chrono::milliseconds kGpuPause{250};
constexpr std::chrono::milliseconds kCostlyGpuPause{1500};
constexpr int kMostGpuTries = 12;

Status check(const TopOptions& options) {
  if (!(options.interval >= kLeastInterval && options.interval <= kMostInterval))
    return fail(Errc::invalid_input,
                fmt::format("--interval must be {} to {} seconds", kLeastInterval, kMostInterval));
  if (options.rank && (*options.rank < 0 || *options.rank > 1 << 24))
    return fail(Errc::invalid_input, "--rank must be the number of a rank");
  return {};
}

top::Sort sort_of(const TopOptions& options) {
  const auto* const at = std::find(top::kSortWords.begin(), top::kSortWords.end(), options.sort);
  return static_cast<top::Sort>(at - top::kSortWords.begin());
}

Result<jobs::KnownJob> find_job(const std::string& word) {
  LOCKSTEP_TRY_ASSIGN(const auto book, jobs::JobBook::open_to_look(io::state_folder()));
  return jobs::places::find_running_job(book, word, jobs::places::Several::newest);
}

std::string end_words(const std::string& id, const std::string& state) {
  return fmt::format("job {} has ended: {}", id, state);
}

// Asks for the state only if no agent answers, because another question is another log-in.
Result<top::JobRows> ask_ranks(jobs::Job& job) {
  const jobs::KnownJob& record = job.record();
  top::JobRows rows{.id = record.id,
                    .name = record.name,
                    .place = record.place,
                    .state = std::string(jobs::state_name(jobs::JobState::running))};
  LOCKSTEP_TRY_ASSIGN(rows.nodes, job.ranks());
  if (!rows.nodes.empty()) return rows;
  LOCKSTEP_TRY_ASSIGN(const jobs::JobStatus status, job.status());
  rows.state = jobs::state_name(status.state);
  return rows;
}

bool has_pending_gpus(const top::JobRows& rows) {
  return std::any_of(rows.nodes.begin(), rows.nodes.end(),
                     [](const looks::NodeRows& node) { return node.gpus_pending; });
}

// The first question starts the reader of the GPUs, which mostly answers within a second.
Result<top::JobRows> ask_ranks_and_gpus(jobs::Job& job) {
  Result<top::JobRows> rows = ask_ranks(job);
  // A question to a Slurm job costs Slurm a step, so such a job is asked once more only.
  const bool costly = job.pause().count() > 0;
  const int most = costly ? 1 : kMostGpuTries;
  const auto pause = costly ? kCostlyGpuPause : kGpuPause;
  for (int tries = 0; rows && has_pending_gpus(*rows) && tries < most; ++tries) {
    if (const int signal = proc::take_stop_signal(pause); signal != 0) {
      raise(signal);  // stays pending for the caller
      break;
    }
    rows = ask_ranks(job);
  }
  return rows;
}

bool has_ended(const top::JobRows& rows) {
  const auto state = jobs::state_of(rows.state);
  return rows.nodes.empty() && state && jobs::is_over(*state);
}

void print(const std::vector<top::ScreenLine>& lines, bool colours) {
  for (const top::ScreenLine& line : lines)
    std::puts(coloured(line, colours).c_str());
  std::fflush(stdout);
}

// Columns of a terminal, also of one that can draw nothing. Output to a pipe is not cut.
std::size_t columns_for_print() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1) return top::kAnyWidth;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// Prints all threads of a rank, as `lockstep why --rank` does.
Result<std::string> threads_of(jobs::Job& job, int rank) {
  LOCKSTEP_TRY_ASSIGN(const auto answers, job.looks({.rank = rank}));
  for (const looks::Answer& answer : answers)
    if (!answer.ranks.empty()) return looks::threads_text(answer.ranks.front());
  return std::string();
}

Status print_once(jobs::Job& job, const TopOptions& options) {
  LOCKSTEP_TRY_ASSIGN(top::JobRows rows, ask_ranks_and_gpus(job));
  if (options.json) {
    std::puts(top::job_rows_json(rows).c_str());
    return {};
  }
  const std::string id = rows.id;
  if (has_ended(rows))
    return fail(Errc::not_found, end_words(id, rows.state), "lockstep why " + id + " says how");
  if (rows.nodes.empty())
    return fail(Errc::unavailable,
                fmt::format("no agent of {} has answered what its ranks do now", id),
                "lockstep why " + id + " says whether the job runs");
  std::optional<int> rank;
  if (options.rank) rank = static_cast<int>(*options.rank);
  if (rank && top::find_rank(rows, *rank) == nullptr)
    return fail(Errc::not_found, fmt::format("rank {} of {} does not run", *rank, id));
  top::Screen screen(sort_of(options), rank);
  screen.take(std::move(rows));
  if (rank) {
    LOCKSTEP_TRY_ASSIGN(std::string threads, threads_of(job, *rank));
    screen.take_threads(*rank, std::move(threads));
  }
  print(screen.draw_once(columns_for_print()), wants_colours(STDOUT_FILENO));
  return {};
}

// A run on this machine leaves no record, so nothing but its process tells its end.
std::string end_of_local(const std::string& id) {
  return jobs::here::find_local_job(id) ? std::string() : fmt::format("{} has ended", id);
}

// A terminal that cannot be drawn on gets one table after the other.
Result<ExitCode> print_again_and_again(const std::string& id, bool local,
                                       const TopOptions& options) {
  const auto interval = std::chrono::duration<double>(options.interval);
  for (bool first = true;; first = false) {
    if (const std::string end = local && !first ? end_of_local(id) : ""; !end.empty()) {
      std::puts(end.c_str());
      return ExitCode::ok;
    }
    LOCKSTEP_TRY_ASSIGN(auto record, find_job(id));
    const auto job = jobs::places::open_job(std::move(record));
    LOCKSTEP_TRY(print_once(*job, options));
    std::puts("");
    const int signal =
        proc::take_stop_signal(std::chrono::ceil<std::chrono::milliseconds>(interval));
    if (signal != 0) return stopped_by(signal);
  }
}

// end_of: see TopViewRequest.
Result<ExitCode> view(const std::string& word, const TopOptions& options,
                      std::function<std::string(const top::JobRows&)> end_of) {
  TopViewRequest request{.word = word, .sort = sort_of(options), .end_of = std::move(end_of)};
  if (options.rank) request.rank = static_cast<int>(*options.rank);
  request.interval =
      std::chrono::duration_cast<io::Duration>(std::chrono::duration<double>(options.interval));
  return view_top(std::move(request));
}

std::string end_by_rows(const top::JobRows& rows) {
  return has_ended(rows) ? end_words(rows.id, rows.state) : std::string();
}

Result<ExitCode> show_top(const Call& call) {
  TopOptions options;
  fill(top_table(), call.parsed, options);
  LOCKSTEP_TRY(check(options));
  LOCKSTEP_TRY_ASSIGN(const NamedJob named, name_job(call, "top"));
  const bool once = options.once || options.json || isatty(STDOUT_FILENO) != 1;
  const bool draws = !once && TopTerminal::size().columns > 0;
  LOCKSTEP_TRY_ASSIGN(auto record, find_job(named.word));
  const std::string id = record.id;
  const bool local = jobs::here::is_local_job(record);
  const auto job = jobs::places::open_job(std::move(record));
  options.interval = std::max(options.interval, static_cast<double>(job->pause().count()));
  if (once) {
    LOCKSTEP_TRY(print_once(*job, options));
    return ExitCode::ok;
  }
  if (!draws) return print_again_and_again(id, local, options);
  return view(id, options, [id, local](const top::JobRows& rows) {
    return local ? end_of_local(id) : end_by_rows(rows);
  });
}

}  // namespace

extern constinit const Subcommand kTop{.name = "top",
                                       .summary = "show what every rank of a job does, live",
                                       .table = top_table,
                                       .run = show_top,
                                       .signals = Signals::blocked};

}  // namespace lockstep::cli
