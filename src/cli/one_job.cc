#include "cli/one_job.h"

#include "base/text.h"
#include "base/word_list.h"
#include "io/own_folders.h"
#include "jobs/places/find_job.h"
#include "jobs/places/running_jobs.h"

#include <fmt/core.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostListed = 8;
constexpr std::size_t kMostCommand = 40;

struct Candidate {
  std::string word;
  std::string command;
};

Result<std::vector<Candidate>> candidates() {
  std::vector<Candidate> found;
  LOCKSTEP_TRY_ASSIGN(const auto book, jobs::JobBook::open_to_look(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(const auto jobs, jobs::places::running_jobs(book));
  for (const jobs::KnownJob& job : jobs)
    found.push_back({job.id, job.command});
  return found;
}

}  // namespace

Result<std::unique_ptr<jobs::Job>> open_named(const NamedJob& named) {
  LOCKSTEP_TRY_ASSIGN(const auto book, jobs::JobBook::open_to_look(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(
      auto known, jobs::places::find_running_job(book, named.word, jobs::places::Several::newest));
  return jobs::places::open_job(std::move(known));
}

Result<NamedJob> name_job(const Call& call, const std::string& verb) {
  NamedJob named{.word = {}, .words = call.words, .parsed = call.parsed};
  if (call.parsed.names.size() > 1)
    return fail(Errc::invalid_input,
                fmt::format("'{}' is one word too many", printable(call.parsed.names[1])));
  if (!call.parsed.names.empty()) {
    named.word = call.parsed.names[0];
    return named;
  }
  LOCKSTEP_TRY_ASSIGN(const auto found, candidates());
  if (found.size() == 1) {
    named.word = found.front().word;
    named.words.push_back(named.word);
    named.parsed.names = {named.word};
    return named;
  }
  if (found.empty())
    return fail(Errc::not_found, "no job is named, and none runs",
                fmt::format("write lockstep {} JOB; lockstep jobs lists the known jobs", verb));
  std::vector<std::string> names;
  for (const Candidate& each : found)
    names.push_back(fmt::format("{} ({})", each.word, printable(each.command, kMostCommand)));
  return fail(
      Errc::invalid_input,
      fmt::format("no job is named, and {} run: {}", found.size(), join_some(names, kMostListed)),
      fmt::format("write lockstep {} JOB", verb));
}

}  // namespace lockstep::cli
