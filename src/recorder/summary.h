// What the flight recorders of one node say, short enough to be told to another node: of each rank
// the few collectives that merge_dumps() needs. Ranks that say the same are told once. Pure.
#pragma once

#include "base/error.h"
#include "recorder/dump.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::recorder {

inline constexpr std::size_t kMostSummary = 16U << 10;  // bytes of JSON

struct Summary {
  std::map<int, Dump> dumps = {};  // by global rank; without sends and without `moved_ns`
  // For so long a rank has been inside a collective while its recorder stood still.
  std::map<int, std::chrono::milliseconds> inside = {};
  std::vector<int> silent = {};      // ranks whose recorder did not answer
  std::vector<int> unreadable = {};  // ranks with a dump that cannot be read
};

// Keeps of each group the collectives around the first that has not ended, and the last two.
// groups: at most so many of a rank, those that have not ended first.
Dump shortened(const Dump& dump, std::size_t groups);

// A line of at most kMostSummary bytes. "": even one group of each rank needs more. Times are told
// as ages, because clocks of machines differ. unix_ns: the wall clock.
std::string summary_json(const Summary& summary, std::int64_t unix_ns);
// Reads the summary of another node. Drops ranks outside of 0 to below `world`. Fails with
// Errc::corrupt.
Result<Summary> read_summary(std::string_view json, int world, std::int64_t unix_ns);

}  // namespace lockstep::recorder
