// A Web with a deadline for all its questions and pauses together, whatever their own timeouts and
// retries are.
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

  // timeout: the deadline has passed.
  Reply ask(const Question& question) override;
  void at_once(const std::vector<std::function<void(Web&)>>& jobs) override;
  std::int64_t now_ms() const override { return web_.now_ms(); }
  // timeout, without a pause: it would last beyond the deadline.
  Status pause(std::chrono::milliseconds time) override;
  std::chrono::milliseconds time_left() const override;

 private:
  Web& web_;
  io::TimePoint until_;
};

}  // namespace lockstep::cloud
