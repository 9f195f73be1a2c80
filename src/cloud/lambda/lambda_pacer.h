// Lambda takes one question a second and one launch in twelve, from all that use an account: a file
// says when the next may go out, so that all processes of this user share the turns.
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
    std::chrono::milliseconds question{1050};  // a little more: ways through the net differ
    std::chrono::milliseconds launch{12'100};
    std::chrono::milliseconds longest_wait{45'000};
  };

  // path: of the file, which is made where it is missing.
  LambdaPacer(std::string path, Limits limits) : path_(std::move(path)), limits_(limits) {}

  // Takes the next turn and waits for it. canceled: the user asked to stop; unavailable: so many
  // are waiting that it would take too long.
  Status turn(Web& web, bool launch);
  // The service has refused one as too early: nobody asks before then.
  void put_off(const Web& web, std::chrono::milliseconds time);

 private:
  struct Turns {
    std::int64_t question_ms = 0;  // Unix time, before which none may go out
    std::int64_t launch_ms = 0;
  };
  // Runs with the file's turns, alone among all threads and processes, and writes them back.
  template <class Change>
  void change(std::int64_t now_ms, Change change);

  std::string path_;
  Limits limits_;
  std::mutex mutex_;
  Turns own_;  // where there can be no file
};

}  // namespace lockstep::cloud::lambda
