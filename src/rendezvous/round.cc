// Checks of a round received from another node.
#include "rendezvous/round.h"

#include "base/text.h"

#include <fmt/core.h>

namespace lockstep::rendezvous {
namespace {

// 64 bits: the numbers come from another node and may overflow their sum.
bool fits(int base, int world, int workers) {
  return base >= 0 && std::int64_t{base} + workers <= world;
}

}  // namespace

// Without this check wrong numbers would reach the workers as RANK and WORLD_SIZE.
Status check_ranks(const Round& round, int workers) {
  if (round.group_rank >= 0 && round.group_rank < round.group_world_size &&
      fits(round.base_rank, round.world_size, workers) &&
      fits(round.role_base_rank, round.role_world_size, workers))
    return {};
  return fail(
      Errc::corrupt,
      fmt::format("round {} makes no sense: node {} of {} with {} workers, ranks from {} of {}, in "
                  "their role from {} of {} (from node rank 0 at {})",
                  round.number, round.group_rank, round.group_world_size, workers, round.base_rank,
                  round.world_size, round.role_base_rank, round.role_world_size,
                  printable(round.master_addr)));
}

}  // namespace lockstep::rendezvous
