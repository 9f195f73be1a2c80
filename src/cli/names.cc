// lockstep complete-names KIND prints the names that completion offers, one a line. Asks no host
// and makes no file. Prints nothing if state.db cannot be read: an error at TAB would end up in the
// user's prompt.
#include "cli/subcommand.h"
#include "cloud/gpu.h"
#include "hosts/registry.h"
#include "io/own_folders.h"
#include "jobs/job_book.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {
namespace {

using Names = std::vector<std::string>;
constexpr std::size_t kMostJobs = 100;

// Returns whether a name is safe to offer. bash expands $(...) in the words of a completion.
bool is_plain(std::string_view name) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-";
  return !name.empty() && name.front() != '-' &&
         name.find_first_not_of(kPlain) == std::string_view::npos;
}

Names cluster_names(const std::string& folder) {
  Names names;
  const auto registry = hosts::Registry::open(folder);
  if (!registry) return names;
  for (const hosts::Cluster& each : registry->list().value_or(std::vector<hosts::Cluster>{}))
    names.push_back(each.name);
  return names;
}

// Returns the names of the newest jobs, newest first. A job whose name is not unique appears by its
// id, because the name alone would not select the job.
Names job_names(const std::string& folder) {
  Names names;
  const auto book = jobs::JobBook::open(folder);
  if (!book) return names;
  const auto jobs = book->list(kMostJobs).value_or(std::vector<jobs::KnownJob>{});
  std::map<std::string, int> count;
  for (const jobs::KnownJob& each : jobs)
    ++count[each.name];
  for (const jobs::KnownJob& each : jobs)
    names.push_back(count[each.name] == 1 ? each.name : each.id);
  return names;
}

// Returns families and full names, since --on-demand takes both.
Names gpu_names() {
  Names names;
  for (const cloud::Gpu& gpu : cloud::gpu_table())
    for (const std::string& name : {gpu.family, gpu.name})
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

Result<ExitCode> names_command(const Call& call) {
  const std::string kind = call.words.empty() ? "" : call.words.front();
  const std::string folder = io::state_folder();
  // Opening the registry would create state.db. Completion must not create files.
  const bool has_book = access((folder + "/state.db").c_str(), R_OK) == 0;
  Names names;
  if (kind == "gpus") names = gpu_names();
  if (kind == "clusters" && has_book) names = cluster_names(folder);
  if (kind == "jobs" && has_book) names = job_names(folder);
  for (const std::string& name : names)
    if (is_plain(name)) std::puts(name.c_str());
  return ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kCompleteNames{.name = "complete-names",
                                                 .summary = "names for the completion of shells",
                                                 .run = names_command,
                                                 .listed = false};

}  // namespace lockstep::cli
