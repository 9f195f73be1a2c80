// The search for a new hub after the hosting node is gone. Walks the list of hosts (line.h) and
// opens a hub here when it is this node's turn. Ends when a leading hub is found, or when too few
// nodes have come together for too long.
#pragma once

#include "base/error.h"
#include "codec/rdzv_endpoint.h"
#include "io/loop.h"
#include "rendezvous/hub/hub_member.h"
#include "rendezvous/hub/line.h"
#include "rendezvous/hub/search_patience.h"

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
    std::chrono::milliseconds patience{30'000};  // after this time the node ends the job for itself
  };
  struct Owner {
    std::function<Status()> open_hub;
    std::function<void()> close_hub;  // closes this node's hub, unless the hub leads
    std::function<void()> give_way;   // closes this node's hub: another hub leads
  };

  HubSuccession(io::Loop& loop, Settings settings, HubMember& member, Owner owner);

  // Starts watching while the member connects to the first host.
  void begin();
  void end();  // ends all searching, for good
  // Called when the member's hub is gone.
  void lost(const Error& error);
  // Called when a hub that leads, or may come to lead, has let the member in.
  void found();
  // Replaces the list of hosts, and this node's place in it.
  void learn(std::vector<codec::RdzvEndpoint> hosts, std::uint32_t own);
  void led_by(std::uint32_t place) { leader_ = place; }
  bool searching() const { return searching_; }
  const std::vector<codec::RdzvEndpoint>& hosts() const { return settings_.hosts; }

 private:
  void search(bool closed);
  void step();
  void wait(io::Duration time);
  void give_up();
  std::string name(std::uint32_t place) const;

  Settings settings_;
  HubMember& member_;
  Owner owner_;
  bool searching_ = false;
  bool ended_ = false;
  bool waited_ = false;       // already waited at a hub that does not lead yet
  bool at_first_ = false;     // at the first host of the line
  std::uint32_t place_ = 0;   // place of the member, or of its current attempt
  std::uint32_t leader_ = 0;  // place of the last leading hub
  bool closed_ = false;
  std::chrono::milliseconds patience_{0};
  SearchPatience until_;
  std::vector<LineStop> stops_;
  std::size_t next_ = 0;
  io::Timer timer_;
};

}  // namespace lockstep::rendezvous::hub
