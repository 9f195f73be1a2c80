// The places where the nodes of a job meet, from the hosts' trials of each other: one address of
// each node that may host the rendezvous. Pure.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::jobs::on_hosts {

struct TriedHost {
  std::string name;
  std::vector<std::string> addresses = {};  // its own, the best first
  int port = 0;                             // free on that host
  // For each of the first hosts: its addresses that this host has reached. This host's own entry
  // is empty.
  std::vector<std::vector<std::string>> reached = {};
};

struct MeetingPlaces {
  std::vector<std::string> endpoints = {};  // "ADDRESS:PORT", node 0 first
  std::string warning = {};  // names hosts that are no meeting place; empty: all of the first are
};

// Returns an endpoint for each of the first `listed` hosts that all other hosts reach at one
// address, but only for the first of several hosts with this address: a node finds its place in the
// list by address. unavailable: node 0 is not such a host, so the nodes cannot meet.
Result<MeetingPlaces> meeting_places(const std::vector<TriedHost>& hosts, std::size_t listed);

}  // namespace lockstep::jobs::on_hosts
