// Keeps Lambda's rate limits for an account: a call a second, and a launch in 12 seconds. All
// processes of this user share a file with the time of the next call.
#pragma once

#include "cloud/web.h"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace lockstep::cloud::lambda {

class LambdaPacer {
 public:
  struct Limits {
    std::chrono::milliseconds question{1050};  // above 1 s, since delays in the network vary
    std::chrono::milliseconds launch{12'100};
    std::chrono::milliseconds longest_wait{45'000};
  };

  // path: the file, which the pacer makes if it is missing.
  LambdaPacer(std::string path, Limits limits) : path_(std::move(path)), limits_(limits) {}

  // Waits until the next call may go out. Errc::canceled: the user asked to stop.
  // Errc::unavailable: the wait would exceed longest_wait.
  Status turn(Web& web, bool launch);
  // Delays all calls after Lambda refused one as too early.
  void put_off(const Web& web, std::chrono::milliseconds time);

 private:
  struct Turns {
    std::int64_t question_ms = 0;  // Unix time before which no call may go out
    std::int64_t launch_ms = 0;
  };
  // Changes the file under a lock against all threads and processes.
  template <class Change>
  void change(std::int64_t now_ms, Change change);

  std::string path_;
  Limits limits_;
  std::mutex mutex_;
  Turns own_;  // used if the file cannot be locked
};

}  // namespace lockstep::cloud::lambda
