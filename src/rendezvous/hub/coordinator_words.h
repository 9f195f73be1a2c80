// What the coordinator tells waiting nodes, in words. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"
#include "rendezvous/hub/current_round.h"
#include "rendezvous/hub/next_round.h"
#include "rendezvous/hub/roster.h"

#include <algorithm>
#include <string>

namespace lockstep::rendezvous::hub {

// The state of a job that goes on.
struct Standing {
  const CoordinatorSettings& settings;
  const Roster& roster;
  const CurrentRound* round;  // nullptr: no round yet
  const NextRound& next;
  Time forming_since{};  // the start of the join timeout of nodes that were spares
  Time now{};
};

double seconds(Ms time);
// Returns when the join timeout of a node begins. A spare's begins when the round is over.
inline Time waits_since(const Roster::Member& member, Time forming_since) {
  return std::max(member.joined_at, forming_since);
}

// Returns the nodes that block progress, for nodes that have joined.
std::string waiting_words(const Standing& standing);
// Returns whose workers still run, for nodes whose workers have ended well.
std::string barrier_words(const Standing& standing);

}  // namespace lockstep::rendezvous::hub
