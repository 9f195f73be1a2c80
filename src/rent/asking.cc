#include "rent/asking.h"

#include "base/text.h"
#include "io/signals_blocked.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::rent {
namespace {

// Users wait this long without a message. Then name the silent providers.
constexpr std::chrono::seconds kWonder{3};

}  // namespace

Asking::Asking(cloud::Web& web, std::vector<Job> jobs)
    : jobs_(std::move(jobs)), answered_(new std::atomic<bool>[jobs_.size()]()) {
  const io::SignalsBlocked blocked;
  // On a thread, so that the main thread can name silent providers meanwhile.
  over_ = std::async(std::launch::async, [this, &web] {
    std::vector<std::function<void(cloud::Web&)>> asks;
    for (std::size_t i = 0; i < jobs_.size(); ++i)
      asks.emplace_back([this, i](cloud::Web& each) {
        jobs_[i].ask(each);
        answered_[i] = true;
      });
    web.at_once(asks);
  });
}

std::string Asking::silent() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < jobs_.size(); ++i)
    // Several questions may go to one provider. Name each provider once.
    if (!answered_[i] && std::find(names.begin(), names.end(), jobs_[i].whom) == names.end())
      names.emplace_back(jobs_[i].whom);
  return join(names, ", ");
}

void Asking::wait(const Waiting& waiting) {
  if (waiting && over_.wait_for(kWonder) != std::future_status::ready)
    if (const std::string whom = silent(); !whom.empty()) waiting(whom);
  over_.wait();
}

}  // namespace lockstep::rent
