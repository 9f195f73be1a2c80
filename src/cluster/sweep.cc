#include "cluster/sweep.h"

#include "cloud/bounded_web.h"
#include "cloud/kept_answer.h"
#include "cluster/on_demand.h"

#include <signal.h>

#include <chrono>
#include <utility>

namespace lockstep::cluster {
namespace {

constexpr std::int64_t kCleanMs = 60'000;
constexpr std::chrono::seconds kWonder{3};

bool found_nothing(const cloud::Reconciled& swept) {
  return swept.ended.empty() && swept.closed.empty() && swept.ending.empty() &&
         swept.unheard.empty();
}

}  // namespace

Sweep::Sweep(OnDemand& world, When when) : world_(world) {
  const std::vector<cloud::Provider*> asked = world.keyed();
  for (const cloud::Provider* one : asked)
    asked_.append(one->traits().name).append(" ");
  auto open = world.journal().open_rentals();
  // The journal is read again by whoever needs it, and its error is said then.
  if (!open || asked.empty()) return;
  before_ = std::move(*open);
  if (when == When::due && before_.empty()) {
    const auto clean =
        cloud::kept_answer(world.cache(), OnDemand::kCleanSweep, world.web().now_ms(), kCleanMs);
    if (clean && clean->text == asked_ + world.owner()) return;
  }
  // Signals are for the thread that was there first.
  sigset_t all;
  sigset_t own;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &own);
  heard_ = std::async(std::launch::async, [&web = world.other_web(), asked] {
    cloud::BoundedWeb bounded(web, io::Clock::now() + kMostListing);
    return cloud::list_ours(bounded, asked);
  });
  pthread_sigmask(SIG_SETMASK, &own, nullptr);
}

void Sweep::wait() const {
  if (heard_.valid()) heard_.wait();
}

Result<cloud::Reconciled> Sweep::finish(const std::function<void()>& waiting) {
  if (!heard_.valid()) return cloud::Reconciled{};
  if (waiting && heard_.wait_for(kWonder) != std::future_status::ready) waiting();
  const std::vector<cloud::Heard> heard = heard_.get();
  cloud::BoundedWeb web(world_.other_web(), io::Clock::now() + kMostEnding);
  LOCKSTEP_TRY_ASSIGN(auto swept, world_.settle(before_, heard, web));
  const auto open = world_.journal().open_rentals();
  if (open && open->empty() && found_nothing(swept))
    cloud::keep_answer(world_.cache(), OnDemand::kCleanSweep, asked_ + world_.owner(),
                       world_.web().now_ms());
  return swept;
}

}  // namespace lockstep::cluster
