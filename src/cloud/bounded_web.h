// A Web with a deadline for all questions and pauses together. Their own timeouts and retries
// cannot exceed the deadline.
#pragma once

#include "cloud/web.h"
#include "io/loop.h"

#include <chrono>
#include <functional>
#include <vector>

namespace lockstep::cloud {

class BoundedWeb : public Web {
 public:
  BoundedWeb(Web& web, io::TimePoint until) : web_(web), until_(until) {}

  // Errc::timeout: the deadline has passed.
  Reply ask(const Question& question) override;
  void at_once(const std::vector<std::function<void(Web&)>>& jobs) override;
  std::int64_t now_ms() const override { return web_.now_ms(); }
  // Errc::timeout, without any pause: the pause would end after the deadline.
  Status pause(std::chrono::milliseconds time) override;
  std::chrono::milliseconds time_left() const override;

 private:
  Web& web_;
  io::TimePoint until_;
};

}  // namespace lockstep::cloud
