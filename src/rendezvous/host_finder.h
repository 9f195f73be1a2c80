// Finds out whether this machine hosts the rendezvous: looks names up where the rules
// (host_match.h) need it, without stopping the loop.
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
  std::optional<io::Address> endpoint_address;  // where it is known
};

// One search. Destroying it forgets it.
class HostFinder {
 public:
  using Done = std::function<void(Result<FoundHost>)>;

  // `done` comes from the loop, within `timeout`.
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

// Where a host of this endpoint listens: a job that says it stays on this machine is not offered to
// the network. "": everywhere.
std::string listening_place(const std::string& endpoint_host);
// Why this node hosts, and what speaks against it: for people.
std::string hosting_reason(const FoundHost& found, const std::string& endpoint_host);
// What the other nodes call this one where they meet at a server of its own: its address on the way
// there. A server on loopback does not mean that the job stays on this machine.
std::string address_beside(const codec::RdzvEndpoint& server,
                           const std::optional<std::string>& local_addr);
// What the other nodes call this one. connected_from: a guest's own end of its connection.
std::string own_node_address(const FoundHost& found, const std::string& endpoint_host, bool hosts,
                             const std::optional<std::string>& local_addr,
                             const std::string& connected_from);

}  // namespace lockstep::rendezvous
