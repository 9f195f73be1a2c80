// lockstep profile: takes a PyTorch profile of a running job, wherever it runs.
#include "base/id.h"
#include "base/number_ranges.h"
#include "base/text.h"
#include "cli/one_job.h"
#include "cli/owner_host.h"
#include "cli/profile_options.h"
#include "cli/subcommand.h"
#include "io/own_folders.h"
#include "jobs/profile_course.h"
#include "jobs/profile_files.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <vector>

namespace lockstep::cli {
namespace {

using jobs::ProfileCourse;
using status::ProfileQuery;

constexpr std::chrono::milliseconds kProfileLook{500};
constexpr std::chrono::milliseconds kLookAfar{2000};
constexpr std::chrono::seconds kSayAgain{10};
constexpr std::size_t kMostRanksAsked = 4096;

// The wish, and its ranks as numbers.
struct Wanted {
  status::ProfileWish wish = {};
  std::vector<int> ranks = {};  // empty: all
};

Result<Wanted> wanted_of(const ProfileOptions& options) {
  Wanted wanted;
  status::ProfileWish& wish = wanted.wish;
  if (options.steps && options.seconds)
    return fail(Errc::invalid_input, "--steps and --seconds exclude each other");
  if (options.seconds && (!std::isfinite(*options.seconds) || *options.seconds < 0.001 ||
                          *options.seconds > status::kMostProfileSeconds))
    return fail(Errc::invalid_input, "--seconds must be 0.001 to 3600");
  const std::int64_t steps = options.steps.value_or(5);
  if (steps < 1 || steps > status::kMostProfileSteps)
    return fail(Errc::invalid_input, "--steps must be 1 to 10000");
  if (options.multiple_of < 1 || options.multiple_of > 1'000'000)
    return fail(Errc::invalid_input, "--multiple-of must be 1 to 1000000");
  if (options.timeout < 1 || options.timeout > 24L * 3600)
    return fail(Errc::invalid_input, "--timeout must be 1 to 86400 seconds");
  auto ranks = parse_ranges(options.ranks, kMostRanksAsked);
  if (!ranks)
    return fail(Errc::invalid_input, fmt::format("--ranks must be a list such as 0-3,7 (got '{}')",
                                                 printable(options.ranks)));
  wanted.ranks = std::move(*ranks);
  for (const int rank : wanted.ranks)
    wish.ranks += (wish.ranks.empty() ? "" : ",") + std::to_string(rank);
  wish.every = static_cast<int>(options.multiple_of);
  wish.limit = static_cast<int>(options.timeout);
  if (options.seconds)
    wish.millis = static_cast<int>(*options.seconds * 1000);
  else
    wish.steps = static_cast<int>(steps);
  return wanted;
}

// Returns a number that no other profile of the job has had.
std::int64_t new_profile_id() {
  std::int64_t id = 0;
  for (const char byte : random_key(4))
    id = id << 8 | static_cast<unsigned char>(byte);
  return id + 1;
}

// A look at hosts is a request to each of them.
std::chrono::milliseconds pause_of(const jobs::Job& job) {
  return std::max<std::chrono::milliseconds>(job.pause(),
                                             job.record().nodes.empty() ? kProfileLook : kLookAfar);
}

struct Output {
  std::string folder;
  bool made = false;  // by this command
};

Result<Output> make_output(const ProfileOptions& options, const jobs::Job& job) {
  Output output{.folder = options.output.value_or("profile-" + job.record().id)};
  if (!output.folder.starts_with('/')) {
    char here[PATH_MAX];
    if (getcwd(here, sizeof here) == nullptr)
      return fail(Errc::not_found, "the current directory no longer exists");
    output.folder = std::string(here) + "/" + output.folder;
  }
  output.made = access(output.folder.c_str(), F_OK) != 0;
  LOCKSTEP_TRY(io::make_folders(output.folder));
  return output;
}

// Removes a folder that this command has made, unless it holds traces.
void drop_if_empty(const Output& output) {
  if (output.made) rmdir(output.folder.c_str());
}

// Brings the traces, which takes nothing off the time of the profile. Returns the signal that
// stopped this; 0: none.
int bring_traces(jobs::Job& job, const std::vector<jobs::TraceThere>& traces,
                 const std::string& output, ProfileCourse& course) {
  for (const jobs::TraceThere& trace : traces) {
    const io::TimePoint from = io::Clock::now();
    const Status brought = job.bring_trace(trace, jobs::trace_path(output, trace.rank));
    course.lasts_longer(io::Clock::now() - from);
    if (brought)
      course.taken(trace.rank);
    else if (brought.error().code == Errc::canceled)
      return brought.error().sys;
    else
      course.failed(trace.rank, brought.error().message);
  }
  return 0;
}

// Follows a profile until all traces are there, or no more can come. Returns the signal that
// stopped the wait; 0: none.
Result<int> follow_profile(jobs::Job& job, std::int64_t id, const std::string& output,
                           ProfileCourse& course) {
  io::TimePoint said = io::Clock::now();
  while (true) {
    const bool late = course.is_late(io::Clock::now());
    if (!late && course.is_over(io::Clock::now())) return 0;
    // The last look comes when the time is over: agents remove what nobody has fetched.
    const auto pause = late ? std::chrono::milliseconds(0) : pause_of(job);
    if (const int signal = proc::take_stop_signal(pause); signal != 0) return signal;
    LOCKSTEP_TRY_ASSIGN(const auto answers,
                        job.profile({.query = {.what = ProfileQuery::What::look, .id = id},
                                     .hosts = course.hosts()}));
    const auto traces = course.feed(answers, io::Clock::now());
    if (const int signal = bring_traces(job, traces, output, course); signal != 0) return signal;
    if (late) return 0;
    const io::TimePoint now = io::Clock::now();
    if (now - said < kSayAgain || course.is_over(now)) continue;
    fmt::print(stderr, "lockstep profile: {}\n", course.waits_for());
    said = now;
  }
}

// Begins a profile and follows it. Returns as follow_profile().
Result<int> run_profile(jobs::Job& job, const Wanted& wanted, const std::string& output,
                        ProfileCourse& course) {
  const std::int64_t id = new_profile_id();
  const auto begun =
      job.profile({.query = {.what = ProfileQuery::What::start, .id = id, .wish = wanted.wish}});
  const Status has_begun = begun ? course.begin(*begun, id, wanted.ranks, io::Clock::now(),
                                                std::chrono::seconds(wanted.wish.limit))
                                 : Failure(begun.error());
  auto ended = has_begun ? follow_profile(job, id, output, course) : Failure(has_begun.error());
  // Tell the end to all hosts, also after a start that was stopped: some may have begun, and their
  // answers were lost.
  (void)job.profile({.query = {.what = ProfileQuery::What::end, .id = id}});
  if (!ended && ended.error().code == Errc::canceled && ended.error().sys != 0)
    return ended.error().sys;
  return ended;
}

Result<ExitCode> show_traces(const ProfileCourse& course, const Output& output) {
  for (const std::string& line : course.missing())
    fmt::print(stderr, "lockstep profile: {}\n", line);
  const std::vector<int> ranks(course.traces().begin(), course.traces().end());
  if (ranks.empty()) {
    drop_if_empty(output);
    return fail(Errc::unavailable, "no rank has written a trace");
  }
  LOCKSTEP_TRY_ASSIGN(const auto merged, jobs::merge_traces(output.folder, ranks));
  for (const std::string& line : merged.left_out)
    fmt::print(stderr, "lockstep profile: not in profile.json: {}\n", line);
  fmt::print("{}: {} {}\n", merged.path, merged.ranks.size() == 1 ? "rank" : "ranks",
             ranges_text(merged.ranks));
  return course.missing().empty() && merged.left_out.empty() ? ExitCode::ok : ExitCode::failed;
}

Result<ExitCode> take_profile(const Call& call) {
  ProfileOptions options;
  fill(profile_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const Wanted wanted, wanted_of(options));
  LOCKSTEP_TRY_ASSIGN(const NamedJob named, name_job(call, "profile"));
  LOCKSTEP_TRY(refuse_owned(named.word, "its ranks", "profile"));
  LOCKSTEP_TRY_ASSIGN(const auto job, open_named(named));
  LOCKSTEP_TRY_ASSIGN(const auto output, make_output(options, *job));
  ProfileCourse course;
  const auto ended = run_profile(*job, wanted, output.folder, course);
  if (ended && *ended == 0) return show_traces(course, output);
  drop_if_empty(output);
  if (!ended) return Failure(ended.error());
  return stopped_by(*ended);
}

}  // namespace

extern constinit const Subcommand kProfile{.name = "profile",
                                           .summary = "take a PyTorch profile of a running job",
                                           .table = profile_table,
                                           .run = take_profile,
                                           .signals = Signals::blocked};

}  // namespace lockstep::cli
