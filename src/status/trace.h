// A job's events as a trace that Perfetto and chrome://tracing show: a process for each node, with
// a track for the node and one for each rank. Pure.
//
// Spans of a track nest by construction: the readers of this format draw nonsense otherwise.
#pragma once

#include "status/job_event.h"

#include <string>
#include <vector>

namespace lockstep::status {

inline constexpr int kMostRankTracks = 1 << 16;

// Takes the events in any order, also of several runs of a job. Spans that have not ended end with
// their node's last event. Returns one JSON object.
//
// most: ranks of all nodes and attempts together. Later ones have no tracks: 100 bytes of an event
// could otherwise ask for megabytes each.
std::string trace_json(std::vector<JobEvent> events, int most = kMostRankTracks);

}  // namespace lockstep::status
