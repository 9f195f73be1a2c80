// The rules of c10d: whether this machine hosts the store, and by which address the other nodes
// reach this node. The rules are pure. HostFacts holds the facts of the machine.
#pragma once

#include "base/error.h"
#include "io/resolve.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous {

struct HostFacts {
  std::string hostname;                    // gethostname()
  std::string canonical_name;              // the resolver's name for this machine; may be empty
  std::vector<std::string> own_addresses;  // of every interface and of the own host name
  std::vector<std::string> endpoint_addresses;  // of the endpoint's host; empty: not resolvable
};

struct HostChoice {
  bool host = false;
  bool may_join_instead = false;  // if the port is taken, a local agent hosts already: be a client
  std::string reason;             // "the endpoint's address 10.0.0.1 is one of this machine's"

  bool operator==(const HostChoice&) const = default;
};

// Decides without a name server: by is_host, or if the endpoint is localhost, an IP address or the
// own host name. Uses only hostname and own_addresses. nullopt: look names up first.
std::optional<HostChoice> choose_host_at_once(const std::string& endpoint_host,
                                              std::optional<bool> is_host, const HostFacts& facts);
// Decides with all facts, by torchrun's rules (PyTorch 2.x). Also accepts every address of this
// machine's interfaces, which torchrun does not look at.
HostChoice choose_host(const std::string& endpoint_host, std::optional<bool> is_host,
                       const HostFacts& facts);

// Returns the IP addresses of the interfaces that are up, without link-local scopes.
std::vector<std::string> interface_addresses();
// Returns the facts for choose_host_at_once(): hostname and interface addresses.
HostFacts facts_of_this_machine();

// Returns the local address of packets to `to`. Sends nothing.
Result<std::string> address_towards(const io::Address& to);

struct NodeAddressFacts {
  std::optional<std::string> local_addr;  // --local-addr, taken as given
  std::string endpoint_host;
  bool hosts = false;         // this node hosts the store
  std::string route_address;  // address_towards(endpoint); empty: unknown
  std::vector<std::string> own_addresses;
  std::string hostname;
};
// Returns this node's name in the rendezvous, which is the workers' meeting point if the node
// becomes rank 0. Never a loopback address, unless the endpoint says that the job stays on one
// machine.
std::string choose_node_address(const NodeAddressFacts& facts);

}  // namespace lockstep::rendezvous
