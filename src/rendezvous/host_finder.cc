// The look-ups in their order, and the texts about the choice.
#include "rendezvous/host_finder.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous {

HostFinder::HostFinder(io::Loop& loop, codec::RdzvEndpoint endpoint, std::optional<bool> is_host,
                       std::chrono::milliseconds timeout, Done done)
    : loop_(loop),
      endpoint_(std::move(endpoint)),
      is_host_(is_host),
      timeout_(timeout),
      done_(std::move(done)),
      timer_(loop) {
  timer_.start({}, [this] { start(); });
}

void HostFinder::start() {
  found_.facts = facts_of_this_machine();
  // An address in digits needs no resolver.
  if (const auto known = io::resolve_numeric(endpoint_.host, endpoint_.port))
    found_.endpoint_address = known->addresses.front();
  if (auto choice = choose_host_at_once(endpoint_.host, is_host_, found_.facts))
    return finish(std::move(*choice));
  look_up_endpoint();
}

void HostFinder::look_up_endpoint() {
  // An active timer keeps the loop running, and ends a look-up that hangs.
  timer_.start(timeout_, [this] {
    lookup_.reset();
    // Move the callback out: the call may destroy this finder.
    const auto done = std::move(done_);
    done(fail(Errc::timeout, "the look-up of '" + printable(endpoint_.host) + "' does not end"));
  });
  // A name that does not resolve is not an error: then this machine does not host.
  lookup_ = std::make_unique<io::Lookup>(
      loop_, endpoint_.host, endpoint_.port, [this](Result<io::Resolved> resolved) {
        if (resolved) {
          found_.endpoint_address = resolved->addresses.front();
          for (const auto& address : resolved->addresses)
            found_.facts.endpoint_addresses.push_back(io::address_text(address));
        }
        look_up_self();
      });
}

void HostFinder::look_up_self() {
  auto& facts = found_.facts;
  lookup_ =
      std::make_unique<io::Lookup>(loop_, facts.hostname, 0, [this](Result<io::Resolved> resolved) {
        auto& own = found_.facts;
        if (resolved) {
          own.canonical_name = resolved->canonical_name;
          for (const auto& address : resolved->addresses)
            own.own_addresses.push_back(io::address_text(address));
        }
        finish(choose_host(endpoint_.host, is_host_, own));
      });
}

void HostFinder::finish(HostChoice choice) {
  lookup_.reset();
  timer_.cancel();
  found_.choice = std::move(choice);
  const auto done = std::move(done_);
  done(std::move(found_));
}

std::string listening_place(const std::string& endpoint_host) {
  const auto known = io::resolve_numeric(endpoint_host, 0);
  // Only numeric loopback addresses and localhost count: a name may be a network address elsewhere.
  return known && io::is_loopback(known->addresses.front()) ? endpoint_host : "";
}

std::string hosting_reason(const FoundHost& found, const std::string& endpoint_host) {
  const auto& own = found.facts.own_addresses;
  const auto& at = found.endpoint_address;
  // Worth a remark: with a loopback endpoint every other node hosts a store of its own.
  if (endpoint_host == "localhost" || (at && io::is_loopback(*at)))
    return found.choice.reason + ", which other machines cannot reach";
  std::vector<std::string> known = found.facts.endpoint_addresses;
  if (at) known = {io::address_text(*at)};
  const auto is_own = [&](const std::string& address) {
    return std::find(own.begin(), own.end(), address) != own.end();
  };
  // Nothing speaks against hosting.
  if (known.empty() || std::any_of(known.begin(), known.end(), is_own)) return found.choice.reason;
  std::string name = printable(endpoint_host);
  if (known.front() != endpoint_host) name += fmt::format(" ({})", join(known, ", "));
  return fmt::format(
      "{}, but {} is not an address of this machine; only one node may have is_host=1",
      found.choice.reason, name);
}

std::string address_beside(const codec::RdzvEndpoint& server,
                           const std::optional<std::string>& local_addr) {
  // The server is external, so only the route to it matters.
  const HostFacts facts = facts_of_this_machine();
  std::string route;
  if (const auto known = io::resolve_numeric(server.host, server.port))
    route = address_towards(known->addresses.front()).value_or(std::string());
  return choose_node_address({.local_addr = local_addr,
                              .endpoint_host = {},
                              .hosts = false,
                              .route_address = route,
                              .own_addresses = facts.own_addresses,
                              .hostname = facts.hostname});
}

std::string own_node_address(const FoundHost& found, const std::string& endpoint_host, bool hosts,
                             const std::optional<std::string>& local_addr,
                             const std::string& connected_from) {
  NodeAddressFacts facts{.local_addr = local_addr,
                         .endpoint_host = endpoint_host,
                         .hosts = hosts,
                         .route_address = connected_from,
                         .own_addresses = found.facts.own_addresses,
                         .hostname = found.facts.hostname};
  // A host is connected to itself, which tells nothing. Ask the kernel for the route to the
  // endpoint.
  if (hosts)
    facts.route_address = found.endpoint_address
                              ? address_towards(*found.endpoint_address).value_or(std::string())
                              : std::string();
  return choose_node_address(facts);
}

}  // namespace lockstep::rendezvous
