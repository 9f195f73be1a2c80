// Plans a fan: which host gets a project's files from the client, and which hosts get the files
// from that host. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::project {

// Bytes from which on a fan pays off. Fewer bytes arrive from the client before two hosts have
// found each other.
inline constexpr std::uint64_t kWorthAFan = 8'000'000;

struct FanNeed {
  std::uint64_t bytes = 0;
  bool here = false;  // this machine, with no uplink between
};

struct FanPlan {
  std::size_t seed = 0;                  // index in the needs
  std::vector<std::size_t> takers = {};  // indexes in the needs
};

// Picks the seed and the takers. The seed is the first host that needs much. Once the missing files
// have come, the seed has the whole tree and can serve any taker. nullopt: fewer than two hosts
// need much.
std::optional<FanPlan> plan_fan(const std::vector<FanNeed>& needs);

}  // namespace lockstep::project
