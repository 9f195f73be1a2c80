// The search for the hub after the node that hosted it is gone: goes along the list of hosts
// (line.h), opens a hub here when it is this node's turn, and ends when a hub that leads is found,
// or when too few nodes have come together for too long.
#pragma once

#include "base/error.h"
#include "codec/rdzv_endpoint.h"
#include "io/loop.h"
#include "rendezvous/hub/hub_member.h"
#include "rendezvous/hub/line.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous::hub {

class HubSuccession {
 public:
  struct Settings {
    std::vector<codec::RdzvEndpoint> hosts;
    std::uint32_t own = 0;
    std::chrono::milliseconds patience{30'000};  // until this node ends
  };
  struct Owner {
    std::function<Status()> open_hub;
    std::function<void()> close_hub;  // unless it leads
  };

  HubSuccession(io::Loop& loop, Settings settings, HubMember& member, Owner owner);

  // Nobody is known to host yet: the member is connecting to the first host.
  void begin();
  void end();  // of all searching; for good
  // The hub that the member was connected to is gone.
  void lost(const Error& error);
  // The member has been let in by a hub that leads, or may.
  void found();
  bool searching() const { return searching_; }
  const std::vector<codec::RdzvEndpoint>& hosts() const { return settings_.hosts; }

 private:
  void search(bool closed);
  void step();
  void give_up();
  std::string name(std::uint32_t place) const;

  Settings settings_;
  HubMember& member_;
  Owner owner_;
  bool searching_ = false;
  bool ended_ = false;
  bool waited_ = false;       // at a hub that does not lead yet
  std::uint32_t place_ = 0;   // where the member is, or looks
  std::uint32_t leader_ = 0;  // whose hub led last
  bool closed_ = false;
  std::chrono::milliseconds patience_{0};
  io::TimePoint until_{};
  bool bounded_ = false;  // until_ counts
  std::vector<LineStop> stops_;
  std::size_t next_ = 0;
  io::Timer timer_;
};

}  // namespace lockstep::rendezvous::hub
