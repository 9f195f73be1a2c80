#include "cli/follow_log.h"

#include "cloud/journal.h"
#include "cluster/job_claim.h"
#include "cluster/registry.h"
#include "io/fd.h"
#include "io/own_folders.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr off_t kMostOfLog = 8 << 20;
constexpr int kLogLookMs = 200;
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

// Much may come between two looks.
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

// What was put aside grows until a write ends that was under way: it is shortened at a later look.
void put_aside(const std::string& path, bool is_last) {
  static std::mutex one_at_a_time;
  static off_t seen = 0;
  const std::lock_guard lock(one_at_a_time);
  const std::string beginning = path + ".1";
  const std::string before = path + ".2";
  if (size_of(path) >= kMostOfLog &&
      rename(path.c_str(), (size_of(beginning) == 0 ? beginning : before).c_str()) == 0)
    (void)begin_log(
        path, fmt::format("lockstep: this log is long: it begins in {}; {} came before this\n",
                          beginning, before));
  const off_t size = size_of(beginning) + size_of(before);
  if (std::exchange(seen, size) != size && !is_last) return;
  if (size_of(beginning) >= 2 * kMostOfLog) {
    if (size_of(before) == 0) keep_end(beginning, before);
    (void)truncate(beginning.c_str(), kMostOfLog);
  }
  if (size_of(before) >= 2 * kMostOfLog) keep_end(before, before);
}

}  // namespace

Status write_follow_log(const std::string& path) {
  LOCKSTEP_TRY(begin_log(path, {}));
  std::thread([path] {
    while (true) {
      poll(nullptr, 0, kLogLookMs);
      put_aside(path, false);
    }
  }).detach();
  return {};
}

void end_follow_log(const std::string& path) {
  std::fflush(stdout);
  put_aside(path, true);
}

std::optional<std::string> cluster_of_log(const std::string& file) {
  for (const std::string_view ending : {".log", ".log.1", ".log.2"})
    if (file.size() > ending.size() && file.ends_with(ending))
      return file.substr(0, file.size() - ending.size());
  return std::nullopt;
}

std::optional<std::string> told_by_follower(const std::string& cluster,
                                            std::optional<std::int64_t> lines) {
  const std::string path = cluster::follow_log(cluster);
  if (!cluster::check_cluster_name(cluster) || access(path.c_str(), R_OK) != 0) return std::nullopt;
  auto journal = cloud::Journal::open(io::state_folder());
  const auto jobs = journal ? journal->jobs() : Failure(journal.error());
  if (jobs)
    for (const cloud::RentedJob& job : *jobs)
      if (job.cluster == cluster && job.stage == cloud::RentedJob::Stage::working &&
          !job.job.empty() && journal->of_cluster(cluster))
        return std::nullopt;
  std::string text;
  for (const char* part : {".1", ".2", ""})
    if (const auto bytes = io::read_file(path + part, kMostShown)) text += *bytes;
  if (!lines) return text;
  std::size_t at = text.size();
  for (std::int64_t left = *lines; left > 0 && at != std::string::npos; --left)
    at = at == 0 ? std::string::npos : text.rfind('\n', at - (left == *lines ? 2 : 1));
  return at == std::string::npos ? text : text.substr(at + 1);
}

}  // namespace lockstep::cli
