// A Web for what may not take longer than a moment that is set beforehand, whatever its questions
// would wait for and how often they would be asked again.
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

  // timeout: its time is over.
  Reply ask(const Question& question) override;
  void at_once(const std::vector<std::function<void(Web&)>>& jobs) override;
  std::int64_t now_ms() const override { return web_.now_ms(); }
  // timeout, at once: it would last longer than there is time.
  Status pause(std::chrono::milliseconds time) override;
  std::chrono::milliseconds time_left() const override;

 private:
  Web& web_;
  io::TimePoint until_;
};

}  // namespace lockstep::cloud
