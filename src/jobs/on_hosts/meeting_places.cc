#include "jobs/on_hosts/meeting_places.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::jobs::on_hosts {
namespace {

using Addresses = std::vector<std::string>;

// Returns the first address of the host that all other hosts have reached, or "".
std::string common_address(const std::vector<TriedHost>& hosts, std::size_t of) {
  // A host lists IPv4 before IPv6, and the loopback last.
  for (const std::string& address : hosts[of].addresses) {
    bool is_common = true;
    for (std::size_t i = 0; i < hosts.size() && is_common; ++i) {
      if (i == of) continue;
      const Addresses& reached = hosts[i].reached[of];
      is_common = std::find(reached.begin(), reached.end(), address) != reached.end();
    }
    if (is_common) return address;
  }
  return {};
}

// Returns why a host is no meeting place, by the first way that fails.
std::string why_not(const std::vector<TriedHost>& hosts, std::size_t of) {
  const TriedHost& to = hosts[of];
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (i != of && hosts[i].reached[of].empty())
      return fmt::format("{} cannot reach {} at any address ({}), port {}", hosts[i].name, to.name,
                         printable(join(to.addresses, ", ")), to.port);
  return fmt::format("no single address of {} is reachable from all other hosts", to.name);
}

std::string endpoint_text(const std::string& address, int port) {
  const bool v6 = address.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", address, v6 ? "]" : "", port);
}

}  // namespace

Result<MeetingPlaces> meeting_places(const std::vector<TriedHost>& hosts, std::size_t listed) {
  MeetingPlaces places;
  std::string first_why;
  Addresses unfit;
  Addresses taken;
  for (std::size_t i = 0; i < std::min(listed, hosts.size()); ++i) {
    const std::string address = common_address(hosts, i);
    if (std::find(taken.begin(), taken.end(), address) != taken.end()) continue;
    if (!address.empty()) {
      taken.push_back(address);
      places.endpoints.push_back(endpoint_text(address, hosts[i].port));
      continue;
    }
    const std::string why = why_not(hosts, i);
    if (i == 0)
      return fail(Errc::unavailable, why,
                  "open the hosts' firewall to each other, or give --rdzv-endpoint");
    if (first_why.empty()) first_why = why;
    unfit.push_back(hosts[i].name);
  }
  // The job can run without a successor for node 0, so this is no error.
  if (!unfit.empty())
    places.warning = fmt::format("{}: if {} is lost, {} cannot host the rendezvous in its place",
                                 first_why, hosts[0].name, join(unfit, ", "));
  return places;
}

}  // namespace lockstep::jobs::on_hosts
