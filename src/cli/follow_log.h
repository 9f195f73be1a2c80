// The log of a follower of a rented job: its messages and the job's output, in bounded files.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::cli {

// Redirects this process's output to the log of the cluster's job. A thread moves a long log aside:
// first to PATH.1, which stays as the beginning, later to PATH.2, which is the part before the
// newest. One object at a time; nothing else may redirect the output.
class FollowLog {
 public:
  explicit FollowLog(const std::string& cluster);
  ~FollowLog();
  FollowLog(const FollowLog&) = delete;
  FollowLog& operator=(const FollowLog&) = delete;

  // Starts the log. The handled signals must be blocked. Logs written before `since_ms`, the start
  // of the rental, are another job's and are removed.
  Status begin(std::int64_t since_ms);

 private:
  void watch();
  void put_aside(bool is_last);

  std::string cluster_;
  std::string beginning_;
  std::string before_;
  std::string path_;
  off_t seen_ = 0;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread watcher_;
};

// Returns the cluster's name if the file name is that of such a log or of a part moved aside.
std::optional<std::string> cluster_of_log(const std::string& file);

// Returns what the follower of that cluster's job has written, for `lockstep logs NAME`: all or the
// last lines. nullopt: there is nothing, or the job's machine can be asked. Also if `newest`, the
// other meaning of the word, runs elsewhere or is newer.
struct FollowerWords {
  std::string text;
  std::string path;
  bool goes_on = false;  // more output may come
};
std::optional<FollowerWords> told_by_follower(const std::string& word,
                                              const Result<jobs::KnownJob>& newest,
                                              std::optional<std::int64_t> lines);

}  // namespace lockstep::cli
