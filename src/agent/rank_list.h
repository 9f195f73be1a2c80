// Ranks and hosts of several workers in one line of text.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep::agent {

struct RankOnHost {
  int rank = 0;
  std::string host;
};

// Formats "rank 3 on n1" or "ranks 0-6, 8-15 on n1; ranks 16-31 on n2", hosts ordered by their
// lowest rank. Beyond `most_hosts` hosts the line ends with "and 40 more workers on 5 more hosts".
std::string rank_list(std::span<const RankOnHost> workers, std::size_t most_hosts = 16);

}  // namespace lockstep::agent
