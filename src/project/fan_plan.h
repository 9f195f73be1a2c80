// Plans a fan: which host gets a project's files from the client, and which hosts get them from
// that host. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::project {

// Fewer bytes have arrived before two hosts have found each other.
inline constexpr std::uint64_t kWorthAFan = 8'000'000;

struct FanNeed {
  std::uint64_t bytes = 0;
  bool here = false;  // this machine: no uplink is between
};

struct FanPlan {
  std::size_t seed = 0;  // its place among the needs
  std::vector<std::size_t> takers = {};
};

// Picks the seed and the takers. A seed that has received its missing files has the whole tree, so
// it can serve any taker. nullopt: fewer than two hosts need much.
std::optional<FanPlan> plan_fan(const std::vector<FanNeed>& needs);

}  // namespace lockstep::project
