#include "rent/gang.h"

#include "cloud/key_pair.h"
#include "cloud/rented_machines.h"
#include "cloud/renting.h"
#include "cloud/user_data.h"
#include "hosts/registry.h"
#include "rent/on_demand.h"
#include "rent/rental_files.h"
#include "rent/rented_cluster.h"
#include "rent/ssh_access.h"
#include "rent/sweep.h"

#include <cstdint>
#include <random>
#include <string_view>
#include <utility>

namespace lockstep::rent {
namespace {

constexpr std::int64_t kFreshMs = 20'000;  // a market older than this is asked for again

std::string new_intent() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::size_t kSize = 20;
  // Several machines may rent with one account at the same moment, so a seed from the clock would
  // not do.
  std::random_device random;
  std::uniform_int_distribution<std::size_t> any(0, kLetters.size() - 1);
  std::string intent;
  while (intent.size() < kSize)
    intent += kLetters[any(random)];
  return intent;
}

// web, ending: those of `world`, but another thread must pass a Web of its own for both.
cloud::RentParts parts_of(OnDemand& world, cloud::Web& web, cloud::Web& ending,
                          const TellEvent& tell) {
  return {
      .journal = world.journal(),
      .web = web,
      .ending = ending,
      .provider = [&world](std::string_view name) { return world.providers().find_keyed(name); },
      .tell = tell,
      .before_call =
          [&world](const cloud::Rental& rental) {
            return world.guards().tell(rental, GuardNewsKind::launching);
          },
      .hold_account = [&world] { return world.locks().take_account(world.web()); }};
}

cloud::RentParts parts_of(OnDemand& world, const TellEvent& tell) {
  return parts_of(world, world.web(), world.side().web(), tell);
}

// Returns a function that gives the offers for a rental. Its first call gives those of `market`,
// unless they are stale: the user took long to decide, or no provider was asked yet.
cloud::Renting::AskOffers offers_for(OnDemand& world, const cloud::Rental& rental, Market& market) {
  return [&world, &rental, &market, first = true]() mutable -> cloud::Catalog {
    const bool still_fresh = first && world.now_ms() - market.asked_ms < kFreshMs;
    first = false;
    if (still_fresh) return std::move(market.catalog);
    auto again = ask_market(world, rental.wish, true);
    if (again) return std::move(again->catalog);
    return {.offers = {}, .silent = {{.provider = "", .why = again.error().message}}};
  };
}

cloud::Verdict judge(OnDemand& world, cloud::Rental& rental, const TellStep& step) {
  // Tell the guard that the client is at work. Otherwise the guard waits less long and then
  // terminates machines without first contact.
  (void)world.guards().tell(rental, GuardNewsKind::working);
  cloud::Verdict verdict = meet_machines(world, rental, step);
  if (verdict.kind != cloud::Verdict::Kind::good) return verdict;
  // Machines unknown to the guard must not be used.
  if (Status told = world.guards().insist(rental); !told)
    return {.kind = cloud::Verdict::Kind::stop, .error = std::move(told).error()};
  return verdict;
}

}  // namespace

Result<cloud::Rental> new_rental(OnDemand& world, const std::string& cluster,
                                 const cloud::Wish& wish, const cloud::Terms& terms) {
  LOCKSTEP_TRY(hosts::check_cluster_name(cluster));
  cloud::Rental rental{.id = new_intent(),
                       .cluster = cluster,
                       .owner = world.owner(),
                       .wish = wish,
                       .terms = terms,
                       .created_ms = world.now_ms()};
  if (rental.terms.allow_from.empty()) {
    LOCKSTEP_TRY_ASSIGN(rental.terms.allow_from, address_for(world, wish));
    rental.terms.own_address = !rental.terms.open_to_all();
  }
  LOCKSTEP_TRY(new_keys(world, rental));
  return rental;
}

Status new_keys(const OnDemand& world, cloud::Rental& rental) {
  // Make a new host key for each gang: the old one was in earlier user data.
  cloud::remove_key_pair(host_key_file(rental.cluster));
  LOCKSTEP_TRY_ASSIGN(const cloud::KeyPair user,
                      cloud::keep_key_pair(user_key_file(rental.cluster), "lockstep"));
  LOCKSTEP_TRY_ASSIGN(const cloud::KeyPair host,
                      cloud::keep_key_pair(host_key_file(rental.cluster), "lockstep-host"));
  const cloud::FirstBoot boot{.host_key = host, .user_public_key = user.public_line};
  LOCKSTEP_TRY_ASSIGN(rental.user_data, cloud::cloud_config(boot));
  // Write one start script for all providers of containers: they all terminate containers in the
  // same way.
  for (const auto& one : world.providers().all())
    if (const cloud::Traits& traits = one->traits(); traits.container) {
      LOCKSTEP_TRY_ASSIGN(rental.start_script, cloud::container_start(boot, traits.machine_ending));
    }
  rental.public_key = user.public_line;
  return {};
}

Status rent_gang(OnDemand& world, cloud::Rental& rental, Market market,
                 const cloud::RentRules& rules, const TellEvent& tell, const TellStep& step) {
  // Before the launch: a cluster of hosts with this name must fail while nothing is billed.
  LOCKSTEP_TRY(take_name(rental));
  // A launch may leave a machine behind: the next sweep must ask the providers.
  forget_clean_sweep(world);
  Status rented = cloud::Renting(parts_of(world, tell), rules)
                      .rent(rental, offers_for(world, rental, market),
                            [&](cloud::Rental& at) { return judge(world, at, step); });
  if (rented) return enter_cluster(rental);
  // Remove the name, unless a machine may still exist.
  if (rental.settled()) (void)leave_cluster(world.journal(), rental.cluster);
  return rented;
}

Status give_back(OnDemand& world, cloud::Rental& rental, const TellEvent& tell,
                 std::chrono::milliseconds patience) {
  // Terminate even if the guard is not reached: the guard asks the provider what is left.
  rental.wanted = false;
  (void)world.guards().tell(rental, GuardNewsKind::working);
  cloud::RentRules rules;
  rules.end_patience = patience;
  const cloud::RentParts parts = parts_of(world, tell);
  LOCKSTEP_TRY(cloud::RentedMachines(parts, rules).give_back(rental));
  // Remove the keys last: they are needed as long as machines may exist.
  LOCKSTEP_TRY(leave_cluster(world.journal(), rental.cluster));
  remove_rental_files(rental.cluster);
  (void)world.guards().tell(rental, GuardNewsKind::noting);
  return {};
}

Status drop_machines(OnDemand& world, cloud::Rental& rental, const std::string& why,
                     const TellEvent& tell) {
  const cloud::RentParts parts = parts_of(world, tell);
  // The rental stays open in the journal, unlike in give_back(), so that its job can rent other
  // machines.
  LOCKSTEP_TRY(cloud::RentedMachines(parts).end_all(rental, why));
  (void)world.guards().tell(rental, GuardNewsKind::noting);
  return leave_cluster(world.journal(), rental.cluster);
}

Status look(OnDemand& world, cloud::Rental& rental) {
  const cloud::RentParts parts = parts_of(world, {});
  return cloud::RentedMachines(parts).look(rental);
}

Status look_only(OnDemand& world, cloud::Rental& rental) {
  return look_only(world, rental, world.web());
}

Status look_only(OnDemand& world, cloud::Rental& rental, cloud::Web& web) {
  const cloud::RentParts parts = parts_of(world, web, web, {});
  return cloud::RentedMachines(parts).look(rental, false);
}

}  // namespace lockstep::rent
