// Asks several providers at the same time, on other threads, while the command goes on. Names the
// providers that have not answered yet.
#pragma once

#include "cloud/web.h"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rent {

class Asking {
 public:
  struct Job {
    std::string_view whom;
    std::function<void(cloud::Web&)> ask;
  };
  // whom: the silent providers, "aws, lambda".
  using Waiting = std::function<void(const std::string& whom)>;

  // Starts asking at once. Leave the jobs' results untouched until wait() or the destructor
  // returns.
  Asking(cloud::Web& web, std::vector<Job> jobs);
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  // Blocks until all providers have answered. waiting: called once, after 3 s, with the names of
  // the silent providers.
  void wait(const Waiting& waiting);

 private:
  std::string silent() const;

  std::vector<Job> jobs_;
  std::unique_ptr<std::atomic<bool>[]> answered_;
  // The destructor of this future waits for the threads.
  std::future<void> over_;
};

}  // namespace lockstep::rent
