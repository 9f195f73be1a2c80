#include "rent/sweep.h"

#include "cloud/kept_answer.h"
#include "rent/on_demand.h"
#include "rent/rented_cluster.h"

#include <chrono>
#include <utility>

namespace lockstep::rent {
namespace {

// The name of the cached answer that a sweep found no machine without a rental.
constexpr const char* kCleanSweep = "clean-sweep";
constexpr std::int64_t kCleanMs = 60'000;

bool found_nothing(const cloud::Reconciled& swept) {
  return swept.ended.empty() && swept.closed.empty() && swept.ending.empty() &&
         swept.not_ended.empty() && swept.unheard.empty();
}

// Compares the providers' lists with the journal: the second half of a sweep.
Result<cloud::Reconciled> settle(OnDemand& world, const std::vector<cloud::Rental>& before,
                                 const std::vector<cloud::Heard>& heard, cloud::Web& web) {
  std::vector<cloud::Provider*> asked;
  asked.reserve(heard.size());
  for (const cloud::Heard& one : heard)
    asked.push_back(one.provider);
  LOCKSTEP_TRY_ASSIGN(
      auto swept,
      cloud::reconcile(
          {world.journal(), web, asked, world.owner(),
           [&world](const std::string& name) { return world.locks().take(name).has_value(); },
           [&world](const std::string& name) { world.locks().release(name); }},
          before, heard));
  for (const cloud::Rental& rental : swept.closed) {
    (void)leave_cluster(world.journal(), rental.cluster);
    (void)world.guards().tell(rental, GuardNewsKind::noting);
  }
  return swept;
}

// Returns a job for each provider in `heard` that lists our machines there.
std::vector<Asking::Job> lists_of(std::vector<cloud::Heard>& heard) {
  std::vector<Asking::Job> jobs;
  jobs.reserve(heard.size());
  for (cloud::Heard& one : heard)
    jobs.push_back({one.provider->traits().name,
                    [&one](cloud::Web& web) { one.listing = one.provider->list(web, {}); }});
  return jobs;
}

}  // namespace

void forget_clean_sweep(const OnDemand& world) {
  cloud::drop_answer(world.ground().cache, kCleanSweep);
}

Result<cloud::Reconciled> sweep_now(OnDemand& world, const Asking::Waiting& waiting) {
  // Read the journal before the lists: a rental that appears in between has machines that this
  // sweep must not judge.
  LOCKSTEP_TRY_ASSIGN(const auto before, world.journal().open_rentals());
  std::vector<cloud::Heard> heard;
  for (cloud::Provider* one : world.providers().keyed())
    heard.push_back({.provider = one});
  Asking(world.web(), lists_of(heard)).wait(waiting);
  LOCKSTEP_TRY(world.signals().check());
  return settle(world, before, heard, world.web());
}

Sweep::Sweep(OnDemand& world, When when, Asking::Waiting waiting)
    : world_(world), waiting_(std::move(waiting)) {
  const std::vector<cloud::Provider*> asked = world.providers().keyed();
  for (const cloud::Provider* one : asked)
    asked_.append(one->traits().name).append(" ");
  auto open = world.journal().open_rentals();
  // Ignore an unreadable journal here: the command reads it again and reports the error.
  if (!open || asked.empty()) return;
  before_ = std::move(*open);
  if (when == When::due && before_.empty()) {
    const auto clean =
        cloud::kept_answer(world.ground().cache, kCleanSweep, world.now_ms(), kCleanMs);
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
  web_.emplace(world.side().web(), io::Clock::now() + kMostListing);
  asking_.emplace(*web_, std::move(jobs));
}

Sweep::~Sweep() {
  if (!asking_) return;
  // Break the promise: questions that wait for it may end.
  own_questions_.reset();
  world_.side().stop(true);
  asking_.reset();
  world_.side().stop(false);
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
  cloud::BoundedWeb web(world_.side().web(), io::Clock::now() + kMostEnding);
  LOCKSTEP_TRY_ASSIGN(auto swept, settle(world_, before_, heard_, web));
  const auto open = world_.journal().open_rentals();
  if (open && open->empty() && found_nothing(swept))
    cloud::keep_answer(world_.ground().cache, kCleanSweep, asked_ + world_.owner(),
                       world_.now_ms());
  return swept;
}

}  // namespace lockstep::rent
