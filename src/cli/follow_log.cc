#include "cli/follow_log.h"

#include "base/last_line.h"
#include "cloud/journal.h"
#include "hosts/registry.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr off_t kMostOfLog = 8 << 20;
constexpr std::chrono::milliseconds kLogLook{200};
constexpr std::size_t kMostShown = 256UL << 20;

Status begin_log(const std::string& path, const std::string& first) {
  const io::Fd log(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) return fail_sys("open " + path, errno);
  if (!first.empty()) (void)!write(log.get(), first.data(), first.size());
  if (dup2(log.get(), STDOUT_FILENO) < 0 || dup2(log.get(), STDERR_FILENO) < 0)
    return fail_sys("open " + path, errno);
  return {};
}

// Copies the last 8 MiB of a log. More than that may be written between two looks.
void keep_end(const std::string& from, const std::string& to) {
  const io::Fd file(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file || lseek(file.get(), -kMostOfLog, SEEK_END) < 0) return;
  std::string end(kMostOfLog, '\0');
  std::size_t got = 0;
  while (got < end.size()) {
    const ssize_t part = read(file.get(), end.data() + got, end.size() - got);
    if (part <= 0) return;
    got += static_cast<std::size_t>(part);
  }
  const io::Fd kept(
      ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (kept) (void)!write(kept.get(), end.data(), end.size());
}

off_t size_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

// Returns when the log was last written; nullopt: there is none.
std::optional<std::int64_t> written_ms(const std::string& cluster) {
  std::optional<std::int64_t> newest;
  for (const std::string& path : rent::follow_logs(cluster)) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) continue;
    const std::int64_t ms =
        std::int64_t{info.st_mtim.tv_sec} * 1000 + info.st_mtim.tv_nsec / 1'000'000;
    newest = std::max(newest.value_or(ms), ms);
  }
  return newest;
}

}  // namespace

FollowLog::FollowLog(const std::string& cluster) : cluster_(cluster) {
  const std::vector<std::string> paths = rent::follow_logs(cluster);
  beginning_ = paths[0];
  before_ = paths[1];
  path_ = paths[2];
}

Status FollowLog::begin(std::int64_t since_ms) {
  if (written_ms(cluster_).value_or(since_ms) < since_ms)
    for (const std::string& path : {beginning_, before_, path_})
      (void)unlink(path.c_str());
  LOCKSTEP_TRY(begin_log(path_, {}));
  watcher_ = std::thread([this] { watch(); });
  return {};
}

// Flushes and bounds the log a last time before the process ends.
FollowLog::~FollowLog() {
  if (!watcher_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  watcher_.join();
  std::fflush(stdout);
  put_aside(true);
}

void FollowLog::watch() {
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, kLogLook, [this] { return is_over_; }))
    put_aside(false);
}

// Moves a long log aside. A write in progress still goes to the moved file. A later look shortens
// that file once the size is stable.
void FollowLog::put_aside(bool is_last) {
  const auto name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  if (size_of(path_) >= kMostOfLog &&
      rename(path_.c_str(), (size_of(beginning_) == 0 ? beginning_ : before_).c_str()) == 0)
    (void)begin_log(path_, fmt::format("lockstep: this log is long: it begins in {}; {} came "
                                       "before this\n",
                                       name(beginning_), name(before_)));
  const off_t size = size_of(beginning_) + size_of(before_);
  if (std::exchange(seen_, size) != size && !is_last) return;
  if (size_of(beginning_) >= 2 * kMostOfLog) {
    if (size_of(before_) == 0) keep_end(beginning_, before_);
    (void)truncate(beginning_.c_str(), kMostOfLog);
  }
  if (size_of(before_) >= 2 * kMostOfLog) keep_end(before_, before_);
}

std::optional<std::string> cluster_of_log(const std::string& file) {
  for (const std::string_view ending : rent::kFollowLogEndings)
    if (file.size() > ending.size() && file.ends_with(ending))
      return file.substr(0, file.size() - ending.size());
  return std::nullopt;
}

std::optional<FollowerWords> told_by_follower(const std::string& word,
                                              const Result<jobs::KnownJob>& newest,
                                              std::optional<std::int64_t> lines) {
  if (!hosts::check_cluster_name(word)) return std::nullopt;
  const auto written = written_ms(word);
  if (!written) return std::nullopt;
  if (newest && (newest->id == word || newest->name == word) &&
      (newest->place != word || newest->created_ms > *written))
    return std::nullopt;
  FollowerWords said{.text = {}, .path = rent::follow_log(word)};
  auto journal = cloud::Journal::open(io::state_folder());
  const auto jobs = journal ? journal->jobs() : Failure(journal.error());
  if (jobs)
    for (const cloud::RentedJob& job : *jobs) {
      if (job.cluster != word || !job.goes_on() || !journal->of_cluster(word)) continue;
      if (job.stage == cloud::RentedJob::Stage::working && !job.job.empty()) return std::nullopt;
      said.goes_on = true;
    }
  for (const std::string& part : rent::follow_logs(word))
    if (const auto bytes = io::read_file(part, kMostShown)) said.text += *bytes;
  if (lines) said.text = std::string(last_lines(said.text, *lines));
  return said;
}

}  // namespace lockstep::cli
