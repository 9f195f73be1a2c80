// The order in which a node looks for a new hub after its hub is gone. All nodes use the same order
// of the list of hosts, so they meet at the first living one. Pure.
#pragma once

#include "rendezvous/hub/hub_frames.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace lockstep::rendezvous::hub {

struct LineStop {
  std::uint32_t place = 0;
  bool own = false;  // this node opens a hub here, and waits for the other nodes
  std::chrono::milliseconds patience{0};
  bool first = false;  // the first of the line: its guests stay while its hub is open
  bool operator==(const LineStop&) const = default;
};

struct LineFacts {
  std::uint32_t own = 0;  // this node's place; a number beyond the list if not listed
  std::uint32_t listed = 0;
  std::uint32_t lost = 0;  // place of the lost hub
  bool closed = false;     // the connection was closed, not silent: the host may still be there
};

// Returns whether the voters without the host at `lost` can be a quorum.
bool may_go_on_without(std::uint32_t lost, const Charter& charter);

// Returns one pass along the list. A charter of term 0 means that the job has not begun.
std::vector<LineStop> walk_line(const LineFacts& facts, const Charter& charter);

}  // namespace lockstep::rendezvous::hub
