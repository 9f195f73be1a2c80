// Questions to providers at once, beside what else the command does; and who has not answered yet.
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
  // whom: "aws, lambda".
  using Waiting = std::function<void(const std::string& whom)>;

  // Asks from now on. What the jobs write to is theirs until it is over.
  Asking(cloud::Web& web, std::vector<Job> jobs);
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  // Until it is over. waiting: is called once, where it takes so long that somebody may wonder.
  void wait(const Waiting& waiting);

 private:
  std::string silent() const;

  std::vector<Job> jobs_;
  std::unique_ptr<std::atomic<bool>[]> answered_;
  // Its destructor waits.
  std::future<void> over_;
};

}  // namespace lockstep::rent
