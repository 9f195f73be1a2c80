#include "rent/first_contact.h"

#include "cloud/pace.h"
#include "cloud/server_clock.h"
#include "hosts/registry.h"
#include "io/fd.h"
#include "rent/boot_watch.h"
#include "rent/gang.h"
#include "rent/on_demand.h"
#include "rent/rental_files.h"
#include "rent/rented_cluster.h"
#include "rent/rented_host.h"
#include "ssh/pins.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep::rent {
namespace {

using cloud::Attempt;
using cloud::Held;
using cloud::Rental;
using cloud::Verdict;

const Attempt* newest(const Rental& rental) {
  for (auto attempt = rental.attempts.rbegin(); attempt != rental.attempts.rend(); ++attempt)
    if (attempt->state == Attempt::State::running) return &*attempt;
  return nullptr;
}

constexpr std::int64_t kClockOffMs = 5'000;
// Pause between two questions to the provider about lost machines.
constexpr std::int64_t kLookEveryMs = 5'000;
// A machine reports its host keys some time after its boot.
constexpr std::int64_t kToldPatience = 30'000;
constexpr std::chrono::seconds kToldPause{2};
constexpr const char* kOwnHostKey =
    "the image created a host key: the key known to the provider counts";

// Returns the host key reported by the machine to its provider. The provider's API is
// authenticated, so the key can be trusted. Empty: no key came within 30 s.
Result<std::string> told_host_key(cloud::Web& web, cloud::Provider& provider,
                                  const cloud::Machine& machine) {
  const std::int64_t last = web.now_ms() + kToldPatience;
  while (true) {
    LOCKSTEP_TRY_ASSIGN(std::string told, provider.host_key(web, machine));
    if (!told.empty() || web.now_ms() >= last) return told;
    LOCKSTEP_TRY(web.pause(kToldPause));
  }
}

// Some images replace the host key from user data. Ask the provider for the machine's key and
// accept only that one: a different machine would be refused. All machines at the same time.
// Returns an error if the user asked to stop.
Status meet_by_told_keys(cloud::Web& web, cloud::Provider& provider,
                         const std::vector<Held*>& machines, const FirstContactRequest& request,
                         std::vector<FirstContact>& met) {
  if (!provider.traits().knows_host_keys) return {};
  std::vector<std::size_t> strange;
  for (std::size_t i = 0; i < met.size(); ++i)
    if (met[i].outcome == FirstContact::Outcome::wrong_host) strange.push_back(i);
  if (strange.empty()) return {};
  std::vector<Result<std::string>> told(strange.size());
  std::vector<std::function<void(cloud::Web&)>> jobs;
  for (std::size_t at = 0; at < strange.size(); ++at)
    jobs.emplace_back([&, at](cloud::Web& own) {
      told[at] = told_host_key(own, provider, machines[strange[at]]->machine);
    });
  web.at_once(jobs);
  FirstContactRequest again = request;
  again.hosts.clear();
  std::vector<std::size_t> known;
  for (std::size_t at = 0; at < strange.size(); ++at) {
    RentedHost host = request.hosts[strange[at]];
    if (!told[at] && told[at].error().code == Errc::canceled) return Failure(told[at].error());
    if (!told[at] || told[at]->empty() || *told[at] == ssh::bare_key(host.host_public_key)) {
      // Keep the refusal: without a word of the provider, a different machine may answer at this
      // address.
      met[strange[at]].error += fmt::format(
          ", and {}", told[at] ? "the provider knows no other key" : told[at].error().message);
      continue;
    }
    request.on_step(strange[at], {ContactStep::Kind::own_host_key, kOwnHostKey});
    host.told_key = *told[at];
    again.hosts.push_back(std::move(host));
    known.push_back(strange[at]);
  }
  if (known.empty()) return {};
  again.on_step = [&](std::size_t at, const ContactStep& step) {
    request.on_step(known[at], step);
  };
  LOCKSTEP_TRY_ASSIGN(auto answers, make_first_contact(again));
  for (std::size_t at = 0; at < known.size(); ++at)
    met[known[at]] = std::move(answers[at]);
  return {};
}

Verdict stopped(Error error) {
  return {.kind = Verdict::Kind::stop, .error = std::move(error)};
}

Result<std::unique_ptr<BootWatch>> watch_boot(OnDemand& world, const Rental& rental) {
  // SQLite connections are not shared between threads
  LOCKSTEP_TRY_ASSIGN(auto opened, cloud::Journal::open(world.ground().state));
  const auto journal = std::make_shared<cloud::Journal>(std::move(opened));
  return BootWatch::start(
      [&world, rental, journal, next = world.now_ms() + kLookEveryMs](cloud::Web& web) mutable {
        if (journal->end_is_asked(rental.id).value_or(false)) return true;
        // Read the journal each second, because a look costs nothing. The provider limits requests,
        // so ask less often.
        if (web.now_ms() < next) return false;
        next = web.now_ms() + kLookEveryMs;
        Rental copy = rental;
        return look_only(world, copy, web) && cloud::is_lost(copy);
      });
}

// Turns the results of first contact into a verdict. Two silent machines in a row stop the renting.
Verdict verdict_of(SilentMachines& silent, const std::vector<FirstContact>& met) {
  for (const FirstContact& one : met) {
    if (one.outcome == FirstContact::Outcome::ready) continue;
    if (silent.note(one.silent))
      return stopped({Errc::unavailable,
                      one.error + ", and the previous machine was not reached, either: a firewall "
                                  "here may block outgoing port 22",
                      "`ssh -v git@github.com` tells whether this network lets SSH out", 0});
    return {.kind = Verdict::Kind::bad, .error = {Errc::unavailable, one.error, {}, 0}};
  }
  (void)silent.note(false);
  return {};
}

// Returns the request for first contact with these machines. attempt: any of theirs, since all have
// the same offer.
Result<FirstContactRequest> request_for(const OnDemand& world, const Rental& rental,
                                        const Attempt& attempt,
                                        const std::vector<Held*>& machines) {
  LOCKSTEP_TRY_ASSIGN(const auto registry, hosts::Registry::open(world.ground().state));
  LOCKSTEP_TRY_ASSIGN(const auto host_key, io::read_file(host_key_file(rental.cluster) + ".pub"));
  const cloud::Traits& traits = world.providers().find(attempt.offer.provider)->traits();
  const double pace = cloud::pace_of(world.ground());
  FirstContactRequest request{.hosts = {},
                              .pins = registry.pins_file(rental.cluster),
                              .wish = {.gpu = attempt.offer.gpu, .gpus = attempt.offer.gpus},
                              .lease = {.ends_ms = rental.ends_ms,
                                        .idle_s = rental.terms.autostop_s,
                                        .ending = traits.machine_ending}};
  if (attempt.offer.spot) request.lease.notice = traits.notice;
  request.health_patience = cloud::paced(request.health_patience, pace);
  request.silent_for = cloud::paced(request.silent_for, pace);
  request.patience = std::chrono::ceil<std::chrono::seconds>(cloud::paced(request.patience, pace));
  request.provider_ahead_ms = cloud::known_server_ahead_ms().value_or(0);
  for (const Held* held : machines)
    request.hosts.push_back({.name = node_name(rental, held->node),
                             .address = held->machine.address,
                             .port = held->machine.port,
                             .user = held->machine.user,
                             .key_path = user_key_file(rental.cluster),
                             .host_public_key = host_key});
  return request;
}

void tell_clock(std::int64_t provider_ahead_ms, const TellStep& step) {
  if (!step || std::abs(provider_ahead_ms) <= kClockOffMs) return;
  step(
      {.text = fmt::format(
           "this machine's clock is {} s {} its provider's: set the clock, since leases and prices "
           "depend on it",
           std::abs(provider_ahead_ms) / 1000, provider_ahead_ms > 0 ? "behind" : "ahead of")});
}

// Meets all machines at the same time, and notes their host keys in the rental.
Result<Verdict> meet_all(OnDemand& world, Rental& rental, const Attempt& attempt,
                         const std::vector<Held*>& machines, const TellStep& step) {
  LOCKSTEP_TRY_ASSIGN(auto request, request_for(world, rental, attempt, machines));
  request.on_step = [&](std::size_t host, const ContactStep& at) {
    if (step) step({at.kind, fmt::format("{}: {}", request.hosts[host].name, at.text)});
  };
  tell_clock(request.provider_ahead_ms, step);
  LOCKSTEP_TRY_ASSIGN(const auto watch, watch_boot(world, rental));
  request.lost_fd = watch->fd();
  LOCKSTEP_TRY_ASSIGN(auto met, make_first_contact(request));
  LOCKSTEP_TRY(meet_by_told_keys(world.web(), *world.providers().find(attempt.offer.provider),
                                 machines, request, met));
  Verdict verdict = verdict_of(world.silent_machines(), met);
  if (verdict.kind != Verdict::Kind::good) return verdict;
  for (std::size_t i = 0; i < met.size(); ++i)
    machines[i]->host_key = met[i].host_public_key;
  LOCKSTEP_TRY(world.journal().keep(rental));
  return verdict;
}

}  // namespace

Verdict meet_machines(OnDemand& world, Rental& rental, const TellStep& step) {
  const std::vector<Held*> machines = machines_there(rental);
  const Attempt* attempt = newest(rental);
  if (attempt == nullptr) return stopped({Errc::internal, "no machine runs", {}, 0});
  if (std::all_of(machines.begin(), machines.end(),
                  [](const Held* held) { return !held->host_key.empty(); }))
    return {};  // an earlier command has made first contact
  auto met = meet_all(world, rental, *attempt, machines, step);
  return met ? std::move(*met) : stopped(std::move(met).error());
}

}  // namespace lockstep::rent
