#include "rent/sweep.h"

#include "cloud/kept_answer.h"
#include "rent/on_demand.h"

#include <chrono>
#include <utility>

namespace lockstep::rent {
namespace {

constexpr std::int64_t kCleanMs = 60'000;

bool found_nothing(const cloud::Reconciled& swept) {
  return swept.ended.empty() && swept.closed.empty() && swept.ending.empty() &&
         swept.not_ended.empty() && swept.unheard.empty();
}

}  // namespace

std::vector<Asking::Job> lists_of(std::vector<cloud::Heard>& heard) {
  std::vector<Asking::Job> jobs;
  jobs.reserve(heard.size());
  for (cloud::Heard& one : heard)
    jobs.push_back({one.provider->traits().name,
                    [&one](cloud::Web& web) { one.listing = one.provider->list(web, {}); }});
  return jobs;
}

Sweep::Sweep(OnDemand& world, When when, Asking::Waiting waiting)
    : world_(world), waiting_(std::move(waiting)) {
  const std::vector<cloud::Provider*> asked = world.keyed();
  for (const cloud::Provider* one : asked)
    asked_.append(one->traits().name).append(" ");
  auto open = world.journal().open_rentals();
  // Ignore an unreadable journal here: the command reads it again and reports the error.
  if (!open || asked.empty()) return;
  before_ = std::move(*open);
  if (when == When::due && before_.empty()) {
    const auto clean =
        cloud::kept_answer(world.cache(), OnDemand::kCleanSweep, world.web().now_ms(), kCleanMs);
    if (clean && clean->text == asked_ + world.owner()) return;
  }
  for (cloud::Provider* one : asked)
    heard_.push_back({.provider = one});
  const std::shared_future<void> own = own_questions_.emplace().get_future().share();
  std::vector<Asking::Job> jobs = lists_of(heard_);
  for (std::size_t i = 0; i < jobs.size(); ++i)
    // A provider with a rate limit would make the command's own questions wait behind the sweep.
    if (heard_[i].provider->traits().takes_turns)
      jobs[i].ask = [own, ask = std::move(jobs[i].ask)](cloud::Web& web) {
        own.wait_for(kAfterOwn);
        ask(web);
      };
  web_.emplace(world.other_web(), io::Clock::now() + kMostListing);
  asking_.emplace(*web_, std::move(jobs));
}

Sweep::~Sweep() {
  if (!asking_) return;
  // Break the promise: questions that wait for it may end.
  own_questions_.reset();
  world_.stop_other(true);
  asking_.reset();
  world_.stop_other(false);
}

void Sweep::wait() {
  own_questions_.reset();
  if (asking_) asking_->wait(waiting_);
}

Result<cloud::Reconciled> Sweep::finish() {
  if (!asking_) return cloud::Reconciled{};
  wait();
  asking_.reset();
  // The user waits for a command, not for the sweep: bound the time.
  cloud::BoundedWeb web(world_.other_web(), io::Clock::now() + kMostEnding);
  LOCKSTEP_TRY_ASSIGN(auto swept, world_.settle(before_, heard_, web));
  const auto open = world_.journal().open_rentals();
  if (open && open->empty() && found_nothing(swept))
    cloud::keep_answer(world_.cache(), OnDemand::kCleanSweep, asked_ + world_.owner(),
                       world_.web().now_ms());
  return swept;
}

}  // namespace lockstep::rent
