// Makes the log folders with a few mkdirat() calls below a directory descriptor: the start of the
// workers waits for it.
#include "logs/log_dir.h"

#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace lockstep::logs {
namespace {
constexpr std::size_t kRandom = 8;
constexpr std::size_t kLongestRunId = 200;  // a file name has at most 255 bytes
constexpr int kTries = 100;

Failure fail_here(const std::string& what, int sys_errno) {
  auto failure = fail_sys("log_dir: " + what, sys_errno);
  failure.value().hint = "choose another place with --log-dir";
  return failure;
}

Failure fail_file_in_the_way(const std::string& path) {
  return fail(Errc::invalid_input, "log_dir: " + path + " is a file",
              "--log-dir takes a directory");
}

// Workers may change their directory, so their paths must be absolute.
std::string absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  char cwd[PATH_MAX];
  if (getcwd(cwd, sizeof cwd) == nullptr) return path;
  return std::string(cwd) + "/" + path;
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.pop_back();
  return path;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return "/";
  return without_trailing_slashes(path.substr(0, slash));
}

bool usable_folder(const char* path) {
  struct stat info {};
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode) && access(path, W_OK | X_OK) == 0;
}

// Returns the folder that Python's tempfile would choose, as torchrun does.
std::string temporary_base() {
  for (const char* name : {"TMPDIR", "TEMP", "TMP"}) {
    const char* dir = std::getenv(name);
    if (dir != nullptr && *dir != '\0' && usable_folder(dir))
      return without_trailing_slashes(absolute(dir));
  }
  for (const char* dir : {"/tmp", "/var/tmp", "/usr/tmp", "."})
    if (usable_folder(dir)) return without_trailing_slashes(absolute(dir));
  return "/tmp";
}

// torchrun fails on a run id with '/'. Here the id becomes a file name.
std::string as_file_name(std::string_view run_id) {
  std::string name(run_id.substr(0, kLongestRunId));
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '/' || byte < 0x20 || byte == 0x7f) c = '_';
  }
  return name;
}

// Makes the folder and its missing parents. Adds the folders made to `made`, outermost first.
Status make_parents(const std::string& path, std::vector<std::string>& made) {
  const auto make = [&] {
    // EEXIST: another process may have made it since.
    if (mkdir(path.c_str(), 0777) != 0) return errno == EEXIST;
    made.push_back(path);
    return true;
  };
  // Try the whole path first: the parents usually exist, and a single call is enough.
  if (make()) return {};
  if ((errno != ENOENT && errno != ENOTDIR) || path == "/") return fail_here(path, errno);
  LOCKSTEP_TRY(make_parents(parent_of(path), made));
  if (make()) return {};
  if (errno == ENOTDIR) return fail_file_in_the_way(parent_of(path));
  return fail_here(path, errno);
}

// Makes a new folder "<prefix><8 random>" with mode 0700.
Result<std::string> make_random(const std::string& parent, const std::string& prefix) {
  for (int i = 0; i < kTries; ++i) {
    std::string path = parent;
    path.append("/").append(prefix).append(random_suffix(kRandom));
    if (mkdir(path.c_str(), 0700) == 0) return path;
    if (errno == ENOTDIR) return fail_file_in_the_way(parent);
    if (errno != EEXIST) return fail_here(parent, errno);
  }
  return fail(Errc::already_exists, "log_dir: no free name in " + parent);
}

Result<io::Fd> open_dir(int parent, const std::string& path) {
  io::Fd dir(openat(parent, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return fail_here(path, errno);
  return dir;
}
}  // namespace

std::string AttemptDir::worker_dir(int local_rank) const {
  return path + "/" + std::to_string(local_rank);
}
std::string AttemptDir::stdout_log(int local_rank) const {
  return worker_dir(local_rank) + "/stdout.log";
}
std::string AttemptDir::stderr_log(int local_rank) const {
  return worker_dir(local_rank) + "/stderr.log";
}
std::string AttemptDir::error_file(int local_rank) const {
  return worker_dir(local_rank) + "/error.json";
}
std::string AttemptDir::filtered_stdout() const {
  return path + "/filtered_stdout.log";
}
std::string AttemptDir::filtered_stderr() const {
  return path + "/filtered_stderr.log";
}

Result<RunDir> create_run_dir(const std::optional<std::string>& base, std::string_view run_id) {
  RunDir run;
  std::string parent;
  if (base) {
    parent = without_trailing_slashes(absolute(*base));
    LOCKSTEP_TRY(make_parents(parent, run.made_));
  } else {
    LOCKSTEP_TRY_ASSIGN(parent, make_random(temporary_base(), "torchelastic_"));
    run.made_.push_back(parent);
  }
  LOCKSTEP_TRY_ASSIGN(run.path_, make_random(parent, as_file_name(run_id) + "_"));
  LOCKSTEP_TRY_ASSIGN(run.dir_, open_dir(AT_FDCWD, run.path_));
  return run;
}

Result<RunDir> create_error_dir() {
  RunDir run;
  LOCKSTEP_TRY_ASSIGN(run.path_, make_random(temporary_base(), "torchelastic_"));
  run.made_.push_back(run.path_);
  run.errors_only_ = true;
  LOCKSTEP_TRY_ASSIGN(run.dir_, open_dir(AT_FDCWD, run.path_));
  return run;
}

void RunDir::remove_unused() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  remove_parents();
}

bool RunDir::has_files() const {
  std::error_code error;
  for (auto entry = std::filesystem::recursive_directory_iterator(path_, error);
       !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error))
    if (entry->is_regular_file(error)) return true;
  return false;
}

void RunDir::remove_empty() const {
  if (errors_only_) return remove_parents();  // removes the folders without files
  std::error_code error;
  std::vector<std::string> folders = {path_};
  for (auto entry = std::filesystem::recursive_directory_iterator(path_, error);
       !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    if (!entry->is_directory(error) || entry->is_symlink(error)) return;
    folders.push_back(entry->path());
  }
  if (error) return;
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder)
    rmdir(folder->c_str());  // fails if a file has appeared meanwhile
  remove_parents();
}

void RunDir::remove_parents() const {
  for (auto path = made_.rbegin(); path != made_.rend(); ++path)
    rmdir(path->c_str());  // keep parents that other files have appeared in
}

Result<AttemptDir> RunDir::create_attempt(int attempt, int workers) {
  const std::string plain = "attempt_" + std::to_string(attempt);
  std::string name = plain;
  // Two attempts have the same restart count if only the nodes have changed.
  for (int again = 2; mkdirat(dir_.get(), name.c_str(), 0777) != 0; ++again) {
    if (errno != EEXIST) return fail_here(path_ + "/" + name, errno);
    name = plain + "." + std::to_string(again);
  }
  AttemptDir made{path_ + "/" + name};
  if (errors_only_) made_.push_back(made.path);
  LOCKSTEP_TRY_ASSIGN(const io::Fd dir, open_dir(dir_.get(), name));
  for (int rank = 0; rank < workers; ++rank) {
    // Workers write error.json into their folder, so it must exist before they start.
    if (mkdirat(dir.get(), std::to_string(rank).c_str(), 0777) != 0) {
      return fail_here(made.worker_dir(rank), errno);
    }
    if (errors_only_) made_.push_back(made.worker_dir(rank));
  }
  return made;
}

}  // namespace lockstep::logs
