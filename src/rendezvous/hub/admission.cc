#include "rendezvous/hub/admission.h"

#include <fmt/core.h>

namespace lockstep::rendezvous::hub {
namespace {

std::string counts(std::size_t least, std::size_t most) {
  return least == most ? fmt::format("{}", least) : fmt::format("{}:{}", least, most);
}

}  // namespace

// The nodes present decide for the job which program it runs. One exception: a node of an earlier
// round overrules newcomers, because a stranger may be the first to arrive after a takeover.
Admission::Comparison Admission::compare(const Roster::Member& member, const Join& join,
                                         const Roster& roster) const {
  Comparison result;
  if (join.min_nodes != min_nodes_ || join.max_nodes != max_nodes_) {
    result.refusal =
        Refusal{Why::settings,
                fmt::format("{} asks for --nnodes {}, the rendezvous '{}' was opened with "
                            "--nnodes {}",
                            join.host, counts(join.min_nodes, join.max_nodes), run_id_,
                            counts(min_nodes_, max_nodes_)),
                "give every node the same --nnodes"};
    return result;
  }
  // `any` and an untold name fit every program.
  if (join.launched.any || join.launched.name.empty()) return result;
  for (const auto& [peer, other] : roster.members()) {
    if (&other == &member || other.stage() == Roster::Stage::idle) continue;
    const Launched& theirs = other.offer.launched;
    if (other.offer.role != join.role || theirs.any || theirs.name.empty()) continue;
    // The other node was compared with all before it, so one match is enough.
    if (theirs.name == join.launched.name) return result;
    const auto differs = other_program(facts_of(join), facts_of(other.offer), run_id_);
    if (!differs) return result;
    const Refusal refusal{Why::settings, differs->message, differs->hint};
    // The node present never took part, and the joining one did: the node present is the stranger.
    const bool stranger = other.stage() == Roster::Stage::joined && other.offer.last_round < 0;
    if (!stranger || join.last_round < 0) {
      result.refusal = refusal;
      return result;
    }
    result.strangers.emplace_back(peer, refusal);
  }
  return result;
}

std::optional<Refusal> Admission::same_node_rank(const Roster::Member& member, const Join& join,
                                                 const Roster& roster) {
  const auto* other = roster.with_node_rank(join.node_rank, member);
  if (other == nullptr) return {};
  return Refusal{Why::settings,
                 fmt::format("two nodes have --node-rank {}: {} ({}) and {} ({})", join.node_rank,
                             other->called(), other->offer.address, join.host, join.address),
                 "give every node a --node-rank of its own"};
}

bool Admission::hold(const Roster::Member& member, Join& join, const Roster& roster, Ms now) {
  const auto* twin = roster.with_node_rank(join.node_rank, member);
  const bool same_host =
      twin != nullptr && twin->called() == join.host && twin->offer.address == join.address;
  // A join that was held before has been released by a tick, for another attempt.
  const auto before = held_.find(member.peer);
  const bool again = before != held_.end();
  // The twin has sent bytes since the join was held, so two agents run on that host.
  if (!same_host || (again && twin->heard > before->second.since)) {
    forget(member.peer);
    return false;
  }
  const Ms since = again ? before->second.since : now + Ms(1);
  held_[member.peer] = {std::move(join), since};
  return true;
}

std::vector<PeerId> Admission::holding() const {
  std::vector<PeerId> peers;
  for (const auto& [peer, held] : held_)
    if (held.join) peers.push_back(peer);
  return peers;
}

std::optional<Join> Admission::release(PeerId peer) {
  const auto at = held_.find(peer);
  if (at == held_.end()) return {};
  std::optional<Join> join = std::move(at->second.join);
  at->second.join.reset();
  return join;
}

}  // namespace lockstep::rendezvous::hub
