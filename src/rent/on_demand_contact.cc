// First contact with a rental's machines, and the rental's entry in the registry of clusters.
#include "cloud/pace.h"
#include "cloud/server_clock.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "rent/boot_watch.h"
#include "rent/on_demand.h"
#include "rent/rented_host.h"
#include "ssh/pins.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace lockstep::rent {
namespace {

using cloud::Attempt;
using cloud::Held;
using cloud::Rental;
using cloud::Verdict;

std::string node_name(const Rental& rental, int node) {
  return fmt::format("{}-{}", rental.cluster, node);
}

// Returns the machines that exist, by node.
std::vector<Held*> there_now(Rental& rental) {
  std::vector<Held*> found;
  for (Attempt& attempt : rental.attempts)
    for (Held& held : attempt.machines)
      if (attempt.state == Attempt::State::running && held.gone_ms == 0) found.push_back(&held);
  std::stable_sort(found.begin(), found.end(),
                   [](const Held* a, const Held* b) { return a->node < b->node; });
  return found;
}

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
    "its image created a host key: the key known to the provider counts";

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

}  // namespace

std::vector<hosts::HostPlace> rented_places(const Rental& rental, const std::string& pins,
                                            const std::string& key_path) {
  Rental copy = rental;
  std::vector<hosts::HostPlace> places;
  for (const Held* held : there_now(copy)) {
    const cloud::Machine& machine = held->machine;
    // Always name the port, as first contact does: ssh then reuses that connection.
    hosts::HostPlace place{
        .name = node_name(rental, held->node),
        .target = {.host = machine.address, .port = machine.port, .key_path = key_path},
        .pins = pins};
    place.target.host_keys = ssh::HostKeys::pinned;
    if (!machine.user.empty()) place.target.user = machine.user;
    places.push_back(std::move(place));
  }
  return places;
}

Result<std::unique_ptr<BootWatch>> OnDemand::watch_boot(const Rental& rental) {
  // SQLite connections are not shared between threads
  LOCKSTEP_TRY_ASSIGN(auto opened, cloud::Journal::open(ground_.state));
  const auto journal = std::make_shared<cloud::Journal>(std::move(opened));
  return BootWatch::start(
      [this, rental, journal, next = web_->now_ms() + kLookEveryMs](cloud::Web& web) mutable {
        if (journal->end_is_asked(rental.id).value_or(false)) return true;
        if (web.now_ms() < next) return false;
        next = web.now_ms() + kLookEveryMs;
        Rental copy = rental;
        return look_only(copy, web) && cloud::is_lost(copy);
      });
}

Verdict OnDemand::first_contact(Rental& rental, const TellStep& step) {
  const std::vector<Held*> machines = there_now(rental);
  const Attempt* attempt = newest(rental);
  if (attempt == nullptr) return stopped({Errc::internal, "no machine runs", {}, 0});
  if (std::all_of(machines.begin(), machines.end(),
                  [](const Held* held) { return !held->host_key.empty(); }))
    return {};  // an earlier command has made first contact
  const auto registry = hosts::Registry::open(ground_.state);
  if (!registry) return stopped(registry.error());
  const auto host_key = io::read_file(folder_of(rental.cluster) + "/host_key.pub");
  if (!host_key) return stopped(host_key.error());
  const cloud::Traits& traits = provider(attempt->offer.provider)->traits();
  FirstContactRequest request{.hosts = {},
                              .pins = registry->pins_file(rental.cluster),
                              .wish = {.gpu = attempt->offer.gpu, .gpus = attempt->offer.gpus},
                              .lease = {.ends_ms = rental.ends_ms,
                                        .idle_s = rental.terms.autostop_s,
                                        .ending = traits.machine_ending}};
  if (attempt->offer.spot) request.lease.notice = traits.notice;
  request.health_patience = cloud::paced(request.health_patience, cloud::pace_of(ground_));
  for (const Held* held : machines)
    request.hosts.push_back({.name = node_name(rental, held->node),
                             .address = held->machine.address,
                             .port = held->machine.port,
                             .user = held->machine.user,
                             .key_path = user_key_file(rental.cluster),
                             .host_public_key = *host_key});
  request.on_step = [&](std::size_t host, const ContactStep& at) {
    if (step) step({at.kind, fmt::format("{}: {}", request.hosts[host].name, at.text)});
  };
  request.silent_for = cloud::paced(request.silent_for, cloud::pace_of(ground_));
  request.patience = std::chrono::ceil<std::chrono::seconds>(
      cloud::paced(request.patience, cloud::pace_of(ground_)));
  request.provider_ahead_ms = cloud::known_server_ahead_ms().value_or(0);
  if (step && std::abs(request.provider_ahead_ms) > kClockOffMs)
    step({.text = fmt::format(
              "this machine's clock is {} s {} its provider's: set the clock, since leases "
              "and prices depend on it",
              std::abs(request.provider_ahead_ms) / 1000,
              request.provider_ahead_ms > 0 ? "behind" : "ahead of")});
  const auto watch = watch_boot(rental);
  if (!watch) return stopped(watch.error());
  request.lost_fd = (*watch)->fd();
  auto met = make_first_contact(request);
  if (!met) return stopped(met.error());
  if (Status again =
          meet_by_told_keys(*web_, *provider(attempt->offer.provider), machines, request, *met);
      !again)
    return stopped(again.error());
  if (Verdict verdict = verdict_of(*met); verdict.kind != Verdict::Kind::good) return verdict;
  for (std::size_t i = 0; i < met->size(); ++i)
    machines[i]->host_key = (*met)[i].host_public_key;
  if (Status kept = journal_->keep(rental); !kept) return stopped(kept.error());
  return {};
}

// Turns the results of first contact into a verdict. Two silent machines in a row stop the renting.
Verdict OnDemand::verdict_of(const std::vector<FirstContact>& met) {
  for (const FirstContact& one : met) {
    if (one.outcome == FirstContact::Outcome::ready) continue;
    if (silent_machines_.note(one.silent))
      return stopped({Errc::unavailable,
                      one.error + ", and the previous machine was not reached, either: a firewall "
                                  "here may block outgoing port 22",
                      "`ssh -v git@github.com` tells whether this network lets SSH out", 0});
    return {.kind = Verdict::Kind::bad, .error = {Errc::unavailable, one.error, {}, 0}};
  }
  (void)silent_machines_.note(false);
  return {};
}

Status OnDemand::check_name(const std::string& cluster) const {
  LOCKSTEP_TRY(hosts::check_cluster_name(cluster));
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(ground_.state));
  const auto known = registry.find(cluster);
  if (!known || known->is_rented()) return {};
  return fail(Errc::already_exists,
              fmt::format("'{}' is already the name of a cluster of hosts", cluster),
              "take another name, or lockstep cluster remove " + cluster);
}

// Enters the cluster into the registry before anything is rented, since its file of host keys is
// used from now on.
Status OnDemand::take_name(const Rental& rental) const {
  LOCKSTEP_TRY(check_name(rental.cluster));
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(ground_.state));
  if (registry.find(rental.cluster)) return {};
  return registry.put(
      {.name = rental.cluster, .source = "cloud", .created_ms = rental.created_ms, .nodes = {}});
}

Status OnDemand::enter_registry(const Rental& rental) const {
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(ground_.state));
  hosts::Cluster cluster{
      .name = rental.cluster, .source = "cloud", .created_ms = rental.created_ms, .nodes = {}};
  for (hosts::HostPlace& place : rented_places(rental, {}, user_key_file(rental.cluster)))
    cluster.nodes.push_back({.target = std::move(place.target)});
  note_use(rental.cluster);
  return registry.put(cluster);
}

Status OnDemand::leave_registry(const std::string& name) const {
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(ground_.state));
  const auto known = registry.find(name);
  if (!known) return {};
  if (!known->is_rented()) return {};
  LOCKSTEP_TRY_ASSIGN(const bool standing, journal_->has_standing(name));
  if (!standing) return registry.remove(name);
  // Keep the empty cluster of a standing rental: its next use rents machines again.
  return registry.put(
      {.name = name, .source = "cloud", .created_ms = known->created_ms, .nodes = {}});
}

}  // namespace lockstep::rent
