// Lists the addresses of the network interfaces.
#include "host/own_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <memory>

namespace lockstep::host {
namespace {

struct Found {
  std::string text;
  int order = 0;  // the smaller, the better
};

Found read_address(const ifaddrs& entry) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  if (entry.ifa_addr->sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(entry.ifa_addr);
    inet_ntop(AF_INET, &in->sin_addr, text.data(), text.size());
    return {text.data(), loopback ? 2 : 0};
  }
  if (entry.ifa_addr->sa_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
    // A link-local address is useless without the name of the interface.
    if (IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr)) return {};
    inet_ntop(AF_INET6, &in->sin6_addr, text.data(), text.size());
    return {text.data(), loopback ? 3 : 1};
  }
  return {};
}

}  // namespace

std::vector<std::string> own_addresses() {
  constexpr int kOrders = 4;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, freeifaddrs);
  std::vector<std::string> addresses;
  // IPv4 before IPv6, loopback last: callers try addresses from the front.
  for (int order = 0; order < kOrders; ++order)
    for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
      // An interface without an address, such as a tunnel, has a null pointer here.
      if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
      const Found found = read_address(*entry);
      if (!found.text.empty() && found.order == order) addresses.push_back(found.text);
    }
  return addresses;
}

}  // namespace lockstep::host
