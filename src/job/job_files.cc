#include "job/job_files.h"

#include "codec/json.h"
#include "io/folder_names.h"
#include "io/own_folders.h"
#include "io/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace lockstep::job {
namespace {

constexpr std::size_t kMostBytes = 16UL << 20;

std::string jobs_folder() {
  return io::state_folder() + "/jobs";
}

Result<nlohmann::json> read_json(const std::string& path) {
  LOCKSTEP_TRY_ASSIGN(const std::string text, io::read_file(path, kMostBytes));
  return codec::parse_json(text, {.bytes = kMostBytes});
}

}  // namespace

Result<JobFiles> JobFiles::create(const JobSpec& spec) {
  LOCKSTEP_TRY(io::make_folders(jobs_folder()));
  JobFiles files(jobs_folder() + "/" + spec.id);
  // mkdir() decides between two clients with the same id.
  const bool made = mkdir(files.folder_.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return fail_sys("make " + files.folder_, errno);
  const Error there{Errc::already_exists, "job " + spec.id + " already exists", {}, 0};
  if (!made && !spec.resumes) return Failure(there);
  const auto fill = [&]() -> Status {
    LOCKSTEP_TRY_ASSIGN(files.lock_, io::FileLock::open(files.path("lock")));
    // A live supervisor still holds the lock.
    LOCKSTEP_TRY_ASSIGN(const bool taken, files.lock_.try_lock());
    if (!taken) return Failure(there);
    return files.keep(spec);
  };
  if (const Status filled = fill(); !filled) {
    // Never remove the folder of an existing job.
    if (made) files.remove();
    return Failure(filled.error());
  }
  return files;
}

Result<JobFiles> JobFiles::open(const std::string& id) {
  JobFiles files(jobs_folder() + "/" + id);
  struct stat folder {};
  if (!is_job_id(id) || stat(files.path("job.json").c_str(), &folder) != 0)
    return fail(Errc::not_found, "there is no job " + id + " here");
  return files;
}

std::vector<std::string> JobFiles::ids() {
  std::vector<std::string> ids;
  for (std::string& name : io::names_in(jobs_folder()))
    if (is_job_id(name)) ids.push_back(std::move(name));
  return ids;
}

Status JobFiles::keep(const JobSpec& spec) const {
  nlohmann::ordered_json json = to_json(spec);
  // The variables may hold secrets, and the file outlives the job.
  json.erase("env");
  return io::keep_record(path("job.json"), codec::print_json(json) + "\n");
}

// The end of a job must be recorded even if the disk is full, so the record has reserved space.
Status JobFiles::keep(const PartState& state) const {
  return io::keep_record_with_spare(path("state.json"), codec::print_json(to_json(state)) + "\n");
}

bool JobFiles::has_supervisor() const {
  // The lock, unlike a stored pid, tells the truth after a crash or a reboot. If the file system
  // cannot tell, assume a supervisor: a job that is taken for lost may be started twice.
  return io::FileLock::is_held(path("lock")).value_or(true);
}

Result<JobRecord> JobFiles::record() const {
  JobRecord record;
  // Look at the lock before reading the state: if the supervisor ends in between, this state is its
  // last.
  const bool alive = has_supervisor();
  LOCKSTEP_TRY_ASSIGN(nlohmann::json spec, read_json(path("job.json")));
  // The environment is never stored, but spec_from_json() requires the member.
  if (spec.is_object()) spec["env"] = nlohmann::json::array();
  LOCKSTEP_TRY_ASSIGN(record.spec, spec_from_json(spec));
  if (const auto state = read_json(path("state.json"))) {
    auto read = state_from_json(*state);
    // A power failure can leave an unreadable state. Without a supervisor the job counts as lost
    // then.
    if (!read && alive) return Failure(std::move(read).error());
    if (read) record.state = std::move(*read);
  }
  if (!alive && record.state.stage != Stage::ended) record.state.stage = Stage::lost;
  if (record.spec.rows > 0) record.row_sets = rows::sets_of(rows());
  return record;
}

std::vector<rows::RowRecord> JobFiles::rows() const {
  return rows::read_book(
      io::read_file(path("report.json.rows/rows.jsonl"), kMostBytes).value_or(""));
}

Result<io::Fd> JobFiles::output(const char* name) const {
  io::Fd file(::open(path(name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return fail_sys("open " + path(name), errno);
  return file;
}

void JobFiles::remove() const {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

void forget_old_jobs(std::size_t most) {
  std::vector<std::pair<std::int64_t, std::string>> ended;
  for (const std::string& id : JobFiles::ids()) {
    const auto files = JobFiles::open(id);
    if (!files || files->has_supervisor()) continue;
    const auto record = files->record();
    // An unreadable job counts as the oldest.
    ended.emplace_back(record ? record->spec.created_ms : 0, id);
  }
  if (ended.size() <= most) return;
  std::sort(ended.begin(), ended.end());
  for (std::size_t i = 0; i < ended.size() - most; ++i)
    if (const auto files = JobFiles::open(ended[i].second)) files->remove();
}

}  // namespace lockstep::job
