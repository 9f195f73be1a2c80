// First contact with machines that run, and their place among the clusters.
#include "cluster/boot_watch.h"
#include "cluster/on_demand.h"
#include "cluster/rented_host.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "ssh/pins.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::cluster {
namespace {

using cloud::Attempt;
using cloud::Held;
using cloud::Rental;
using cloud::Verdict;

std::string node_name(const Rental& rental, int node) {
  return fmt::format("{}-{}", rental.cluster, node);
}

// The machines that are there, by node.
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

constexpr std::int64_t kLookEveryMs = 5'000;    // for machines that are gone
constexpr std::int64_t kToldPatience = 30'000;  // a machine tells its keys some time after its boot
constexpr std::chrono::seconds kToldPause{2};

// What the machine has told its provider, which we ask over a line that is authenticated.
Result<std::string> told_host_key(cloud::Web& web, cloud::Provider& provider,
                                  const cloud::Machine& machine) {
  const std::int64_t last = web.now_ms() + kToldPatience;
  while (true) {
    LOCKSTEP_TRY_ASSIGN(std::string told, provider.host_key(web, machine));
    if (!told.empty() || web.now_ms() >= last) return told;
    LOCKSTEP_TRY(web.pause(kToldPause));
  }
}

// Its image has replaced the host key that it was given, or it is another machine: the key that its
// provider knows decides, and nothing else than that one is accepted. An error: stopped.
Status meet_by_told_key(cloud::Web& web, cloud::Provider& provider, const cloud::Machine& machine,
                        const FirstContactRequest& request, std::size_t host, FirstContact& met) {
  if (!provider.traits().knows_host_keys) return {};
  const std::string given = ssh::bare_key(request.hosts[host].host_public_key);
  auto told = told_host_key(web, provider, machine);
  if (!told && told.error().code == Errc::canceled) return Failure(told.error());
  if (!told || told->empty() || *told == given) {
    met.error +=
        fmt::format(", and {}", told ? "its provider knows no other" : told.error().message);
    return {};
  }
  request.on_step(host, "its image has made a host key of its own: what its provider knows counts");
  FirstContactRequest again = request;
  again.hosts = {request.hosts[host]};
  again.hosts[0].host_public_key = *told;
  again.on_step = [&](std::size_t, std::string_view what) { request.on_step(host, what); };
  LOCKSTEP_TRY_ASSIGN(auto answers, make_first_contact(again));
  met = std::move(answers.front());
  return {};
}

Verdict stopped(Error error) {
  return {.kind = Verdict::Kind::stop, .error = std::move(error)};
}

}  // namespace

std::vector<HostPlace> rented_places(const Rental& rental, const std::string& pins,
                                     const std::string& key_path) {
  Rental copy = rental;
  std::vector<HostPlace> places;
  for (const Held* held : there_now(copy)) {
    const cloud::Machine& machine = held->machine;
    // The port in any case, as at first contact: so it is that connection which is used.
    HostPlace place{.name = node_name(rental, held->node),
                    .target = {.host = machine.address, .port = machine.port, .key_path = key_path},
                    .pins = pins};
    place.target.host_keys = ssh::HostKeys::pinned;
    if (!machine.user.empty()) place.target.user = machine.user;
    places.push_back(std::move(place));
  }
  return places;
}

Result<std::unique_ptr<BootWatch>> OnDemand::watch_boot(const Rental& rental) {
  LOCKSTEP_TRY_ASSIGN(auto opened, cloud::Journal::open(ground_.state));  // one for each thread
  const auto journal = std::make_shared<cloud::Journal>(std::move(opened));
  return BootWatch::start(
      [this, rental, journal, next = web_->now_ms() + kLookEveryMs](cloud::Web& web) mutable {
        if (journal->end_is_asked(rental.id).value_or(false)) return true;
        if (web.now_ms() < next) return false;
        next = web.now_ms() + kLookEveryMs;
        Rental copy = rental;
        return look_only(copy, web) && cloud::Renting::lost(copy);
      });
}

Verdict OnDemand::first_contact(Rental& rental, const TellStep& step) {
  const std::vector<Held*> machines = there_now(rental);
  const Attempt* attempt = newest(rental);
  if (attempt == nullptr) return stopped({Errc::internal, "no machine runs", {}, 0});
  if (std::all_of(machines.begin(), machines.end(),
                  [](const Held* held) { return !held->host_key.empty(); }))
    return {};  // an earlier client has met them
  const auto registry = Registry::open(ground_.state);
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
  for (const Held* held : machines)
    request.hosts.push_back({.name = node_name(rental, held->node),
                             .address = held->machine.address,
                             .port = held->machine.port,
                             .user = held->machine.user,
                             .key_path = user_key_file(rental.cluster),
                             .host_public_key = *host_key});
  request.on_step = [&](std::size_t host, std::string_view what) {
    if (step) step(fmt::format("{}: {}", request.hosts[host].name, what));
  };
  const auto watch = watch_boot(rental);
  if (!watch) return stopped(watch.error());
  request.lost_fd = (*watch)->fd();
  auto met = make_first_contact(request);
  if (!met) return stopped(met.error());
  for (std::size_t i = 0; i < met->size(); ++i) {
    FirstContact& one = (*met)[i];
    if (one.outcome == FirstContact::Outcome::wrong_host)
      if (Status again = meet_by_told_key(*web_, *provider(attempt->offer.provider),
                                          machines[i]->machine, request, i, one);
          !again)
        return stopped(again.error());
    if (one.outcome != FirstContact::Outcome::ready)
      return {.kind = Verdict::Kind::bad, .error = {Errc::unavailable, one.error, {}, 0}};
    machines[i]->host_key = one.host_public_key;
  }
  if (Status kept = journal_->keep(rental); !kept) return stopped(kept.error());
  return {};
}

Status OnDemand::check_name(const std::string& cluster) const {
  LOCKSTEP_TRY(check_cluster_name(cluster));
  LOCKSTEP_TRY_ASSIGN(const Registry registry, Registry::open(ground_.state));
  const auto known = registry.find(cluster);
  if (!known || known->is_rented()) return {};
  return fail(Errc::already_exists,
              fmt::format("'{}' is the name of a cluster of hosts already", cluster),
              "take another name, or lockstep cluster remove " + cluster);
}

// Before anything is rented: from now on its pins are in use.
Status OnDemand::take_name(const Rental& rental) const {
  LOCKSTEP_TRY(check_name(rental.cluster));
  LOCKSTEP_TRY_ASSIGN(const Registry registry, Registry::open(ground_.state));
  if (registry.find(rental.cluster)) return {};
  return registry.put(
      {.name = rental.cluster, .source = "cloud", .created_ms = rental.created_ms, .nodes = {}});
}

Status OnDemand::enter_registry(const Rental& rental) const {
  LOCKSTEP_TRY_ASSIGN(const Registry registry, Registry::open(ground_.state));
  Cluster cluster{
      .name = rental.cluster, .source = "cloud", .created_ms = rental.created_ms, .nodes = {}};
  for (HostPlace& place : rented_places(rental, {}, user_key_file(rental.cluster)))
    cluster.nodes.push_back({.target = std::move(place.target)});
  note_use(rental.cluster);
  return registry.put(cluster);
}

Status OnDemand::leave_registry(const std::string& name) const {
  LOCKSTEP_TRY_ASSIGN(const Registry registry, Registry::open(ground_.state));
  const auto known = registry.find(name);
  if (!known) return {};
  if (!known->is_rented()) return {};
  LOCKSTEP_TRY_ASSIGN(const bool standing, journal_->has_standing(name));
  if (!standing) return registry.remove(name);
  // Rented again at its next use.
  return registry.put(
      {.name = name, .source = "cloud", .created_ms = known->created_ms, .nodes = {}});
}

}  // namespace lockstep::cluster
