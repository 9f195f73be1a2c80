#include "rendezvous/node.h"

#include <fmt/core.h>

namespace lockstep::rendezvous {
namespace {
// Large enough never to collide with torchrun's counter, and small enough for a pickled BININT.
constexpr std::int64_t kBadge = 0x4C530000;  // "LS"
constexpr std::int64_t kHost = 0x8000;
constexpr std::int64_t kMostRank = 0x7FFD;
}  // namespace

std::string to_text(const Node& node) {
  return fmt::format("{}_{}_{}", node.addr, node.pid, node.local_id);
}

// Layout: "LS" in the upper 16 bits, then one bit for the host, then 1 + node rank in 15 bits.
std::int64_t local_id_of(const Badge& badge) {
  std::int64_t id = kBadge | (badge.host ? kHost : 0);
  // A rank beyond the field is not told: the node counts as one without a rank.
  if (badge.node_rank && *badge.node_rank >= 0 && *badge.node_rank <= kMostRank)
    id |= *badge.node_rank + 1;
  return id;
}

std::optional<Badge> badge_of(const Node& node) {
  // torchrun's agents count from 0.
  if ((node.local_id & ~std::int64_t{0xFFFF}) != kBadge) return std::nullopt;
  Badge badge;
  badge.host = (node.local_id & kHost) != 0;
  const auto rank = static_cast<int>(node.local_id & 0x7FFF);
  if (rank > 0) badge.node_rank = rank - 1;
  return badge;
}

}  // namespace lockstep::rendezvous
