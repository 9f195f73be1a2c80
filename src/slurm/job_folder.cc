#include "slurm/job_folder.h"

#include "base/text.h"
#include "codec/json_fields.h"
#include "io/fd.h"
#include "io/folder_names.h"
#include "io/own_folders.h"
#include "io/replace_file.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace lockstep::slurm {
namespace {

// Bounds for what is read from the folder: other processes write there, and a report holds the
// tails of many ranks.
constexpr std::size_t kMostBytes = 8UL << 20;
constexpr std::size_t kMostReports = 100'000;

// In state.json: -1 for a job without a chain, because 0 means a chain without limit.
constexpr int kNoChain = -1;
constexpr int kMostRuns = 1'000'000;

constexpr std::array<std::string_view, 3> kStages = {"running", "requeued", "ended"};

}  // namespace

// The member names are read by newer and older versions of Lockstep: add names, never rename.
static void fields(codec::JsonFields& io, BatchState& state) {
  io("state", state.stage, kStages);
  io("job", state.job);
  io("number", state.number);
  io("run", state.run);
  io("host", state.host);
  io("started_ms", state.started_ms);
  io("ended_ms", state.ended_ms);
  io("code", state.code, {0, 255});
  io("cause", state.cause);
  io("words", state.words);
  io("earlier", state.earlier);
  io("jobs", state.jobs);
  io("next", state.next);
  // The file has numbers in place of a flag and of null.
  int requeue = state.requeue ? 1 : 0;
  io("requeue", requeue);
  int chain = state.chain.value_or(kNoChain);
  io("chain", chain, {kNoChain, kMostRuns});
  io("lead_s", state.lead_s);
  io("output", state.output);
  io("step", state.step);
  io("step_line", state.step_line);
  if (!io.reads()) return;
  state.requeue = requeue != 0;
  if (chain >= 0) state.chain = chain;
}

std::string state_text(const BatchState& state) {
  return codec::print_json(codec::write_fields(state)) + "\n";
}

// Tolerant: a job may be older than the lockstep that reads its state.
Result<BatchState> state_from_text(std::string_view text) {
  BatchState state;
  if (!codec::read_fields(codec::parse_json(text), state, codec::kTolerantJson))
    return fail(Errc::corrupt, "the job's state.json is damaged");
  return state;
}

std::string_view job_now(const BatchState& state) {
  return state.next.empty() ? state.job : state.next;
}

Result<JobFolder> JobFolder::create(const std::string& id) {
  LOCKSTEP_TRY(io::make_folders(io::state_folder() + "/slurm"));
  JobFolder folder(place(id));
  // mkdir fails if the folder exists, so no other job's folder is reused.
  for (const std::string& path : {folder.path(), folder.at("reports"), folder.at("ranks")})
    if (mkdir(path.c_str(), 0700) != 0) return fail_sys("make " + path, errno);
  return folder;
}

std::string JobFolder::place(const std::string& id) {
  return io::state_folder() + "/slurm/" + id;
}

std::string JobFolder::report(int run, std::string_view node) const {
  return at(fmt::format("reports/{}-{}.json", run, node));
}

Status JobFolder::keep(const BatchState& state) const {
  return io::keep_record(at("state.json"), state_text(state));
}

Result<BatchState> JobFolder::state() const {
  LOCKSTEP_TRY_ASSIGN(const std::string text, io::read_file(at("state.json")));
  return state_from_text(text);
}

std::vector<std::string> JobFolder::launches() const {
  std::vector<std::int64_t> numbers;
  for (const std::string& name : io::names_in(at("launches")))
    if (const auto number = parse_int(name)) numbers.push_back(*number);
  // Launches are numbered in order, so the highest number is the latest.
  std::sort(numbers.rbegin(), numbers.rend());
  std::vector<std::string> paths;
  paths.reserve(numbers.size());
  for (const std::int64_t number : numbers)
    paths.push_back(at("launches/" + std::to_string(number)));
  return paths;
}

// A launch's folder is JOB/launches/NUMBER.
std::optional<std::string> JobFolder::of_script() const {
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (folder.filename() != "launches") return std::nullopt;
  return folder.parent_path();
}

// A row's folder is JOB/rows/NUMBER.
std::optional<std::size_t> JobFolder::number_of_row() const {
  const std::filesystem::path folder(path_);
  if (folder.parent_path().filename() != "rows") return std::nullopt;
  const auto number = parse_int(folder.filename().string());
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::size_t>(*number);
}

bool JobFolder::is_in_row() const {
  return JobFolder(of_script().value_or(path_)).number_of_row().has_value();
}

Status JobFolder::make_row(const std::vector<std::string>& shared) const {
  for (const std::string& path : {path_, at("reports")})
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail_sys("make " + path, errno);
  const std::filesystem::path job = std::filesystem::path(path_).parent_path().parent_path();
  // Only the job of a user's own script has this folder.
  std::error_code none;
  if (std::filesystem::exists(job / "launches", none) && mkdir(at("launches").c_str(), 0700) != 0 &&
      errno != EEXIST)
    return fail_sys("make " + at("launches"), errno);
  for (const std::string& name : shared) {
    std::error_code error;
    if (!std::filesystem::exists(job / name, error)) continue;
    if (symlink((job / name).c_str(), at(name).c_str()) != 0 && errno != EEXIST)
      return fail_sys("link " + at(name), errno);
  }
  return {};
}

std::string JobFolder::job_id() const {
  std::filesystem::path folder(of_script().value_or(path_));
  if (JobFolder(folder.string()).number_of_row()) folder = folder.parent_path().parent_path();
  return folder.filename().string();
}

int JobFolder::runs_before(std::string_view job) const {
  // A missing file means the first job of a chain, or no chain.
  const auto text = io::read_file(at(fmt::format("{}/{}", kRunsFolder, job)), 100);
  const auto runs = text ? parse_int(strip(*text)) : std::nullopt;
  return runs && *runs > 0 && *runs <= kMostRuns ? static_cast<int>(*runs) : 0;
}

Status JobFolder::note_runs_before(std::string_view job, int runs) const {
  if (mkdir(at(kRunsFolder).c_str(), 0700) != 0 && errno != EEXIST)
    return fail_sys("make " + at(kRunsFolder), errno);
  return io::keep_record(at(fmt::format("{}/{}", kRunsFolder, job)), fmt::format("{}\n", runs));
}

std::vector<std::string> JobFolder::reports(int run) const {
  std::vector<std::string> texts;
  const std::string begin = fmt::format("{}-", run);
  std::vector<std::string> names = io::names_in(at("reports"));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    // Reports of earlier runs stay in the folder.
    if (!name.starts_with(begin)) continue;
    if (auto text = io::read_file(at("reports/" + name), kMostBytes))
      texts.push_back(std::move(*text));
    if (texts.size() == kMostReports) break;
  }
  return texts;
}

std::vector<std::string> JobFolder::last_reports() const {
  const std::vector<std::string> paths = launches();
  const JobFolder folder(paths.empty() ? path_ : paths.front());
  const auto now = folder.state();
  return now ? folder.reports(now->run) : std::vector<std::string>();
}

}  // namespace lockstep::slurm
