// lockstep profile: takes a PyTorch profile of a running job, wherever it runs.
#include "base/id.h"
#include "base/number_ranges.h"
#include "base/text.h"
#include "cli/one_job.h"
#include "cli/profile_options.h"
#include "cli/subcommand.h"
#include "io/own_folders.h"
#include "jobs/profile_course.h"
#include "jobs/profile_files.h"
#include "jobs/profile_run.h"

#include <fmt/core.h>

#include <unistd.h>

#include <climits>
#include <cmath>
#include <cstdio>
#include <vector>

namespace lockstep::cli {
namespace {

using jobs::ProfileCourse;
using jobs::WantedProfile;

constexpr std::size_t kMostRanksAsked = 4096;

// Returns a number that no other profile of the job has had.
std::int64_t new_profile_id() {
  std::int64_t id = 0;
  for (const char byte : random_key(4))
    id = id << 8 | static_cast<unsigned char>(byte);
  return id + 1;
}

Result<WantedProfile> wanted_of(const ProfileOptions& options) {
  WantedProfile wanted{.id = new_profile_id()};
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
  LOCKSTEP_TRY_ASSIGN(const WantedProfile wanted, wanted_of(options));
  LOCKSTEP_TRY_ASSIGN(const NamedJob named, name_job(call, "profile"));
  LOCKSTEP_TRY_ASSIGN(const auto job, open_named(named));
  LOCKSTEP_TRY_ASSIGN(const auto output, make_output(options, *job));
  ProfileCourse course;
  const auto say = [](const std::string& line) {
    fmt::print(stderr, "lockstep profile: {}\n", line);
  };
  const auto ended = jobs::run_profile(*job, wanted, output.folder, course, {.say = say});
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
