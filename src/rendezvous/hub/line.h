// Where a node looks for the hub when the one that it knew is gone: along the list of hosts, always
// in the same order, so that the nodes find each other at the first one that lives. Pure.
#pragma once

#include "rendezvous/hub/hub_frames.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace lockstep::rendezvous::hub {

struct LineStop {
  std::uint32_t place = 0;
  bool own = false;  // this node opens a hub itself, and waits for the others
  std::chrono::milliseconds patience{0};
  bool operator==(const LineStop&) const = default;
};

struct LineFacts {
  std::uint32_t own = 0;  // this node's place; beyond the list: it is not in there
  std::uint32_t listed = 0;
  std::uint32_t lost = 0;  // whose hub is gone
  bool closed = false;     // the connection was, so that its host may still be there
};

// Whether the voters can be a quorum without that one.
bool may_go_on_without(std::uint32_t lost, const Charter& charter);

// One way along the list. A charter of term 0: the job has not begun.
std::vector<LineStop> walk_line(const LineFacts& facts, const Charter& charter);

}  // namespace lockstep::rendezvous::hub
