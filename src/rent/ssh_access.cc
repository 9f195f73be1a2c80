#include "rent/ssh_access.h"

#include "base/text.h"
#include "http/proxy.h"
#include "io/fd.h"
#include "rent/on_demand.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

namespace lockstep::rent {
namespace {

constexpr int kSshPort = 22;

// A provider's rule may cover several rentals of a region or an account. Keep the rule open to the
// needs of the other rentals. The last of `all` is the rental whose address has changed.
Status set_rule(cloud::Web& web, cloud::Provider& provider, const cloud::Offer& offer,
                const std::vector<cloud::Rental>& all) {
  LOCKSTEP_TRY(provider.keys());
  const cloud::Ending ending = provider.traits().ending;
  switch (provider.traits().port_rule) {
    case cloud::PortRule::none:
      break;
    case cloud::PortRule::of_rental:
      return provider.allow(web, offer.region, all.back().terms.allowed(offer.ending));
    case cloud::PortRule::of_region:
      return provider.allow(web, offer.region,
                            cloud::allowed_by(all, offer.provider, offer.region, ending));
    case cloud::PortRule::of_account:
      return provider.allow(web, offer.region, cloud::allowed_by(all, offer.provider, {}, ending));
  }
  return {};
}

// Notes the address in another rental, unless a process is changing that rental just now: such a
// process asks for the rule again anyway.
void note_address(OnDemand& world, const std::string& cluster, const std::string& address) {
  if (!world.locks().take(cluster)) return;
  if (auto rental = world.journal().of_cluster(cluster);
      rental && rental->terms.allow_from != address) {
    rental->terms.allow_from = address;
    (void)world.journal().keep(*rental);
  }
  world.locks().release(cluster);
}

}  // namespace

Result<std::string> own_address(cloud::Web& web) {
  const char* other = std::getenv("LOCKSTEP_CHECKIP_URL");
  const cloud::Reply reply =
      web.ask({.method = "GET",
               .base = other != nullptr && *other != '\0' ? other : "https://checkip.amazonaws.com",
               .fields = {},
               .body = {},
               .body_limit = 4096,
               .repeatable = true});
  std::string address;
  if (reply.answer && reply.answer->head.status == 200)
    address = std::string(strip(reply.answer->body));
  // The answer becomes a firewall rule. Anything but digits and dots, such as the page of a captive
  // portal, must not.
  const bool digits =
      !address.empty() && address.find_first_not_of("0123456789.") == std::string::npos;
  if (!digits)
    return fail(Errc::unavailable,
                "this machine's public address was not found, and no other may reach the machines' "
                "ssh port",
                "give the address as --allow-from ADDRESS/32");
  return address + "/32";
}

Result<std::string> address_for(OnDemand& world, const cloud::Wish& wish) {
  LOCKSTEP_TRY_ASSIGN(const auto asked, world.providers().with_keys(wish.providers));
  const bool ruled = std::any_of(asked.begin(), asked.end(), [](const cloud::Provider* one) {
    return one->traits().port_rule != cloud::PortRule::none;
  });
  if (!ruled) return std::string(cloud::kEverybody);
  return own_address(world.web());
}

bool lets_in(const cloud::Rental& rental, const std::string& address) {
  return rental.settled() || http::is_in_no_proxy(rental.terms.allow_from,
                                                  address.substr(0, address.find('/')), kSshPort);
}

// Rentals that follow this machine's address get the new address too.
Status open_to(OnDemand& world, cloud::Rental& rental, const std::string& address) {
  // Read and write the rule under one lock: two commands would otherwise drop each other's address.
  LOCKSTEP_TRY_ASSIGN(const io::Fd mine, world.locks().take_account(world.web()));
  LOCKSTEP_TRY_ASSIGN(std::vector<cloud::Rental> all, world.journal().open_rentals());
  std::erase_if(all, [&](const cloud::Rental& other) { return other.id == rental.id; });
  if (rental.terms.own_address)
    for (cloud::Rental& other : all)
      if (other.terms.own_address) other.terms.allow_from = address;
  all.push_back(rental);
  all.back().terms.allow_from = address;
  for (const cloud::Attempt& attempt : rental.attempts) {
    cloud::Provider* one =
        attempt.open() ? world.providers().find(attempt.offer.provider) : nullptr;
    if (one == nullptr) continue;
    if (Status open = set_rule(world.web(), *one, attempt.offer, all); !open)
      return Failure(std::move(open).error().within(
          fmt::format("{} {}: the ssh port of '{}' is not open to {}, where this machine is now",
                      one->traits().title, attempt.offer.region, rental.cluster, address)));
  }
  rental.terms.allow_from = address;
  LOCKSTEP_TRY(world.journal().keep(rental));
  for (const cloud::Rental& other : all)
    if (rental.terms.own_address && other.terms.own_address)
      note_address(world, other.cluster, address);
  return {};
}

Status follow_address(OnDemand& world, cloud::Rental& rental, const std::string& address,
                      const std::function<void(const std::string& line)>& tell) {
  const bool known = lets_in(rental, address);
  const std::string before = rental.terms.allow_from;
  if (rental.settled() || (known && !rental.terms.own_address)) return {};
  if (!rental.terms.own_address)
    return fail(Errc::denied,
                fmt::format("{}: the ssh port of '{}' is open to {} alone (--allow-from), and this "
                            "machine is at {} now",
                            rented_where(world, rental), rental.cluster, before, address),
                fmt::format("lockstep up {} --allow-from {} opens it", rental.cluster, address));
  // Open even an address already open in the journal: another process may have changed a shared
  // rule.
  LOCKSTEP_TRY(open_to(world, rental, address));
  if (known) return {};
  tell(fmt::format(
      "your address changed from {} to {}: the machines' ssh port is open to the new one", before,
      address));
  return {};
}

std::string rented_where(const OnDemand& world, const cloud::Rental& rental) {
  for (const cloud::Attempt& attempt : rental.attempts)
    if (const cloud::Provider* one = world.providers().find(attempt.offer.provider);
        attempt.open() && one != nullptr)
      return fmt::format("{} {}", one->traits().title, attempt.offer.region);
  return "nowhere";
}

}  // namespace lockstep::rent
