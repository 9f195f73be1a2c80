// Finds out whether this machine hosts the rendezvous. Looks up names if the rules (host_match.h)
// need them, without blocking the loop.
#pragma once

#include "base/error.h"
#include "codec/rdzv_endpoint.h"
#include "io/loop.h"
#include "io/resolve.h"
#include "rendezvous/host_match.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous {

struct FoundHost {
  HostChoice choice;
  HostFacts facts;
  std::optional<io::Address> endpoint_address;  // if known
};

// One search. Destroying the finder cancels the search.
class HostFinder {
 public:
  using Done = std::function<void(Result<FoundHost>)>;

  // Calls `done` from the loop, within `timeout`.
  HostFinder(io::Loop& loop, codec::RdzvEndpoint endpoint, std::optional<bool> is_host,
             std::chrono::milliseconds timeout, Done done);

 private:
  void start();
  void look_up_endpoint();
  void look_up_self();
  void finish(HostChoice choice);

  io::Loop& loop_;
  codec::RdzvEndpoint endpoint_;
  std::optional<bool> is_host_;
  std::chrono::milliseconds timeout_;
  Done done_;
  FoundHost found_;
  io::Timer timer_;
  std::unique_ptr<io::Lookup> lookup_;
};

// Returns the address on which a host of this endpoint listens; "": all addresses. A loopback
// endpoint says that the job stays on this machine, so nothing is offered to the network.
std::string listening_place(const std::string& endpoint_host);
// Returns why this node hosts, and any contradiction, for messages.
std::string hosting_reason(const FoundHost& found, const std::string& endpoint_host);
// Returns this node's address for jobs that meet at an external server: the local address of the
// route to the server. A server on loopback does not mean that the job stays on this machine.
std::string address_beside(const codec::RdzvEndpoint& server,
                           const std::optional<std::string>& local_addr);
// Returns this node's address as known to the other nodes. connected_from: the local end of a
// guest's connection.
std::string own_node_address(const FoundHost& found, const std::string& endpoint_host, bool hosts,
                             const std::optional<std::string>& local_addr,
                             const std::string& connected_from);

}  // namespace lockstep::rendezvous
