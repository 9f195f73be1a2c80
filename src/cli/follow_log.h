// What a follower of a job on rented machines writes: its own words and the job's output, within
// bounds however much that is.
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

// As long as it is there this process writes to the log of that cluster's job. When that is long it
// is put aside as PATH.1, which stays as the beginning, later as PATH.2, which is what came last
// before; a thread sees to that. One at a time, and nobody else changes where output goes.
class FollowLog {
 public:
  explicit FollowLog(const std::string& cluster);
  ~FollowLog();
  FollowLog(const FollowLog&) = delete;
  FollowLog& operator=(const FollowLog&) = delete;

  // The handled signals must be blocked. What was said of machines that were rented before `since`
  // is another job's, and is thrown away.
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

// Whether the file, by its name, is such a log or was put aside of it: the cluster's name.
std::optional<std::string> cluster_of_log(const std::string& file);

// For `lockstep logs NAME`: what the follower of that cluster's job has written, all of it or its
// last lines. nullopt: nothing, its machine is there and can be asked, or `newest`, which that word
// means else, is of another place or came later.
struct FollowerWords {
  std::string text;
  std::string path;
  bool goes_on = false;  // more may come
};
std::optional<FollowerWords> told_by_follower(const std::string& word,
                                              const Result<jobs::KnownJob>& newest,
                                              std::optional<std::int64_t> lines);

}  // namespace lockstep::cli
