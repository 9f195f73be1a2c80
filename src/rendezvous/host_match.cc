// The rules, and the system calls that collect the facts.
#include "rendezvous/host_match.h"

#include "base/text.h"
#include "host/identity.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace lockstep::rendezvous {
namespace {

bool contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// Returns the usual spelling of `host` if it is an IP address.
std::optional<std::string> digits(const std::string& host) {
  if (host == "localhost") return std::nullopt;
  const auto resolved = io::resolve_numeric(host, 0);
  if (!resolved) return std::nullopt;
  return io::address_text(resolved->addresses.front());
}

bool is_loopback_text(const std::string& address) {
  const auto resolved = io::resolve_numeric(address, 0);
  return resolved && io::is_loopback(resolved->addresses.front());
}

// Drops the interface from "fe80::1%eth0", which means nothing on other machines.
std::string without_scope(const std::string& address) {
  return address.substr(0, address.find('%'));
}

// Hosts unless the port is taken: then a local agent hosts already, and this one joins as a client.
HostChoice hosting(std::string reason) {
  return {true, true, std::move(reason)};
}

bool same_name(const std::string& a, const std::string& b) {
  return to_lower(a) == to_lower(b);
}

}  // namespace

std::optional<HostChoice> choose_host_at_once(const std::string& endpoint_host,
                                              std::optional<bool> is_host, const HostFacts& facts) {
  // An explicit is_host is final in both directions, as in torchrun.
  if (is_host && *is_host) return HostChoice{true, false, "is_host says so"};
  if (is_host) return HostChoice{false, false, "is_host says no"};
  if (endpoint_host == "localhost") return hosting("the endpoint is localhost");
  if (const auto address = digits(endpoint_host)) {
    if (is_loopback_text(*address)) return hosting("the endpoint is a loopback address");
    if (contains(facts.own_addresses, without_scope(*address)))
      return hosting(
          fmt::format("the endpoint's address {} is one of this machine's", endpoint_host));
    return HostChoice{false, false,
                      fmt::format("{} is not an address of this machine", endpoint_host)};
  }
  if (same_name(endpoint_host, facts.hostname))
    return hosting("the endpoint is this machine's host name");
  return std::nullopt;
}

// torchrun's order of rules; the first match wins.
HostChoice choose_host(const std::string& endpoint_host, std::optional<bool> is_host,
                       const HostFacts& facts) {
  if (auto choice = choose_host_at_once(endpoint_host, is_host, facts)) return *choice;
  if (!facts.canonical_name.empty() && same_name(endpoint_host, facts.canonical_name))
    return hosting("the endpoint is this machine's canonical host name");
  for (const auto& address : facts.endpoint_addresses) {
    if (is_loopback_text(address) || contains(facts.own_addresses, without_scope(address)))
      return hosting(fmt::format("{} is {}, an address of this machine", endpoint_host, address));
  }
  if (facts.endpoint_addresses.empty())
    return {false, false,
            fmt::format("the name '{}' cannot be resolved here", printable(endpoint_host))};
  return {false, false,
          fmt::format("{} is {}, not an address of this machine", printable(endpoint_host),
                      join(facts.endpoint_addresses, ", "))};
}

std::vector<std::string> interface_addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  // Without the list only the host name's own addresses count.
  if (getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    // A down interface receives nothing.
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    io::Address address;
    address.size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, at->ifa_addr, address.size);
    const std::string text = without_scope(io::address_text(address));
    if (!contains(found, text)) found.push_back(text);
  }
  return found;
}

HostFacts facts_of_this_machine() {
  return {.hostname = host::hostname(),
          .canonical_name = {},
          .own_addresses = interface_addresses(),
          .endpoint_addresses = {}};
}

Result<std::string> address_towards(const io::Address& to) {
  const std::string what = "find the way to " + io::address_text(to);
  // connect() on a UDP socket makes the kernel choose a route and an own address, without a packet.
  const io::Fd fd(socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail_sys(what, errno);
  // Some kernels refuse port 0.
  io::Address target = to;
  constexpr in_port_t kDiscard = 9;
  if (to.family() == AF_INET)
    reinterpret_cast<sockaddr_in&>(target.storage).sin_port = htons(kDiscard);
  if (to.family() == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(target.storage).sin6_port = htons(kDiscard);
  if (connect(fd.get(), target.get(), target.size) != 0) return fail_sys(what, errno);
  io::Address own;
  own.size = sizeof own.storage;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own.storage), &own.size) != 0)
    return fail_sys(what, errno);
  return io::address_text(own);
}

std::string choose_node_address(const NodeAddressFacts& facts) {
  if (facts.local_addr && !facts.local_addr->empty()) return *facts.local_addr;
  const bool stays_here = facts.endpoint_host == "localhost" ||
                          (digits(facts.endpoint_host) && is_loopback_text(facts.endpoint_host));
  if (!facts.route_address.empty() && (stays_here || !is_loopback_text(facts.route_address)))
    return facts.route_address;
  // A host's own name may lead to loopback (Debian's 127.0.1.1). The other nodes reach the host by
  // the endpoint's name, which they have resolved already.
  if (facts.hosts && !facts.endpoint_host.empty()) return facts.endpoint_host;
  for (const auto& address : facts.own_addresses) {
    // fe80: addresses are valid on one link only.
    if (!is_loopback_text(address) && !address.starts_with("fe80:")) return address;
  }
  return facts.hostname;
}

}  // namespace lockstep::rendezvous
