#include "cloud/bounded_web.h"

#include <algorithm>
#include <utility>

namespace lockstep::cloud {
namespace {

Failure no_more_time() {
  return fail(Errc::timeout, "no answer in the time that there was");
}

}  // namespace

std::chrono::milliseconds BoundedWeb::time_left() const {
  return std::chrono::ceil<std::chrono::milliseconds>(until_ - io::Clock::now());
}

Reply BoundedWeb::ask(const Question& question) {
  const auto time = time_left();
  if (time.count() <= 0) return {.answer = no_more_time(), .sent = false};
  Question bounded = question;
  // The limit holds for all requests together. A request that begins late gets only the rest.
  bounded.timeout = std::min(bounded.timeout, time);
  return web_.ask(bounded);
}

void BoundedWeb::at_once(const std::vector<std::function<void(Web&)>>& jobs) {
  std::vector<std::function<void(Web&)>> bounded;
  bounded.reserve(jobs.size());
  for (const auto& job : jobs)
    bounded.emplace_back([this, &job](Web& web) {
      BoundedWeb own(web, until_);
      job(own);
    });
  web_.at_once(bounded);
}

Status BoundedWeb::pause(std::chrono::milliseconds time) {
  // A pause of 0 only checks whether the user asked to stop.
  if (time > time_left() && time.count() > 0) return no_more_time();
  return web_.pause(time);
}

}  // namespace lockstep::cloud
