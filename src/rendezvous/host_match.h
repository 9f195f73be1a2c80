// c10d: does this machine host the store, and by which address do the others reach this node. The
// rules are pure; what they need to know of the machine is in HostFacts.
#pragma once

#include "base/error.h"
#include "io/resolve.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous {

struct HostFacts {
  std::string hostname;                         // gethostname()
  std::string canonical_name;                   // what the resolver makes of it; may be empty
  std::vector<std::string> own_addresses;       // of every interface, and of the own host name
  std::vector<std::string> endpoint_addresses;  // of the endpoint's host; empty: not resolvable
};

struct HostChoice {
  bool host = false;
  bool may_join_instead = false;  // the port taken: somebody here hosts already, be its client
  std::string reason;             // "the endpoint's address 10.0.0.1 is one of this machine's"

  bool operator==(const HostChoice&) const = default;
};

// Without asking a name server: is_host, and endpoints that are localhost, an address in digits, or
// the own host name. Only hostname and own_addresses of the facts count. nullopt: look names up.
std::optional<HostChoice> choose_host_at_once(const std::string& endpoint_host,
                                              std::optional<bool> is_host, const HostFacts& facts);
// With all facts. torchrun's rules (PyTorch 2.x), and every address of this machine's interfaces,
// which torchrun does not look at.
HostChoice choose_host(const std::string& endpoint_host, std::optional<bool> is_host,
                       const HostFacts& facts);

// Addresses of this machine's interfaces that are up, in digits, link-local scopes left out.
std::vector<std::string> interface_addresses();
// The hostname and the interfaces: what choose_host_at_once() needs.
HostFacts facts_of_this_machine();

// The own address that packets to `to` leave from. Nothing is sent.
Result<std::string> address_towards(const io::Address& to);

struct NodeAddressFacts {
  std::optional<std::string> local_addr;  // --local-addr: taken as given
  std::string endpoint_host;
  bool hosts = false;         // this node hosts the store
  std::string route_address;  // address_towards(endpoint); empty: unknown
  std::vector<std::string> own_addresses;
  std::string hostname;
};
// What this node is called in the rendezvous, and where workers meet if it becomes rank 0. Never a
// loopback address unless the endpoint itself says that the job stays on one machine.
std::string choose_node_address(const NodeAddressFacts& facts);

}  // namespace lockstep::rendezvous
