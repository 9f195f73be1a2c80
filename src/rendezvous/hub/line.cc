// Patience and order of the stops; docs/protocols/lockstep-rendezvous.md explains the succession.
#include "rendezvous/hub/line.h"

#include "rendezvous/hub/ledger.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace lockstep::rendezvous::hub {
namespace {

using namespace std::chrono_literals;
using Ms = std::chrono::milliseconds;

constexpr Ms kAgain = 1'000ms;  // the host whose connection was closed may be back
constexpr Ms kFirst = 1'500ms;  // the next in line, which may notice the loss later
constexpr Ms kFurther = 700ms;  // the hosts behind the first
// Hosts far behind: long enough to find a hub that is open. Of 63 voters, a pass must end well
// before a searching node gives up (30 s).
constexpr Ms kFar = 300ms;
constexpr int kNear = 8;         // hosts that get more time than the far ones
constexpr Ms kNeeded = 3'000ms;  // the other of two hosts: without its vote a quorum is unlikely
constexpr Ms kStranger =
    300ms;  // a host without a vote: only a node with a newer charter would open a hub there
constexpr Ms kGather = 2'500ms;     // this node's own hub, at least; see gathering()
constexpr Ms kBeginning = 3'000ms;  // the first host, before the job has begun
constexpr std::uint32_t kMostStrangers = 16;
constexpr std::uint32_t kMostUnknown = 64;  // hosts that a node without a charter asks
constexpr std::ptrdiff_t kMostBehind = 8;
constexpr Ms kBehindFirst = 4'000ms;  // this node's own hub, if the node is the first of the line
constexpr std::ptrdiff_t kMostBehindFirst = 3;

// Returns the voters that may host, by place.
std::set<std::uint32_t> candidates(const LineFacts& facts, const Charter& charter) {
  std::set<std::uint32_t> places;
  for (const Voter& voter : charter.now.all)
    if (voter.place < facts.listed) places.insert(voter.place);
  return places;
}

// Returns how long the node at `own` waits in a hub of its own. The node stays longer than nodes
// behind it in the line, by the time that they spend elsewhere. With equal times two nodes that
// began at unlucky moments would always find the other's hub closed. Nodes behind the first also
// spend time in hubs of their own, so the first waits longest. Without that, two pairs of four
// nodes could chase each other for as long as they search.
Ms gathering(std::uint32_t own, const std::set<std::uint32_t>& places, bool is_first) {
  const auto behind = std::distance(places.upper_bound(own), places.end());
  if (is_first) return kGather + kBehindFirst * std::min(behind, kMostBehindFirst);
  return kGather + kFurther * std::min(behind, kMostBehind);
}

}  // namespace

bool may_go_on_without(std::uint32_t lost, const Charter& charter) {
  std::set<Nonce> others;
  for (const Voters* voters : {&charter.now, &charter.before})
    for (const Voter& voter : voters->all)
      if (voter.place != lost) others.insert(voter.agent);
  return is_quorum(charter.now, others) && is_quorum(charter.before, others);
}

std::vector<LineStop> walk_line(const LineFacts& facts, const Charter& charter) {
  std::vector<LineStop> stops;
  const bool begun = charter.term > 0;
  auto places = begun ? candidates(facts, charter) : std::set<std::uint32_t>{};
  // A node of two may have missed the charter that gave a vote to the node, or to the client of
  // `run --on` (remote_vote.h). The node learns of that charter only from voters at its own hub.
  const bool of_two = begun && facts.listed == 2 && facts.own < facts.listed;
  if (of_two) places.insert(facts.own);
  const bool lost_other = facts.lost != facts.own && facts.lost < facts.listed;
  // Without the lost host's vote no quorum may be left. Then opening a hub here would be in vain.
  const bool may_host = begun && (!lost_other || of_two || may_go_on_without(facts.lost, charter));
  if (facts.closed && lost_other) stops.push_back({facts.lost, false, kAgain});
  if (of_two && lost_other && !may_go_on_without(facts.lost, charter))
    stops.push_back({facts.lost, false, kNeeded});
  const auto at = std::find_if(places.begin(), places.end(),
                               [&](std::uint32_t place) { return place != facts.lost; });
  const std::uint32_t first = at == places.end() ? facts.listed : *at;
  Ms patience = kFirst;
  int seen = 0;
  for (const std::uint32_t place : places) {
    if (place == facts.lost) continue;
    const bool is_first = place == first;
    if (place == facts.own) {
      if (may_host) stops.push_back({place, true, gathering(place, places, is_first), is_first});
      continue;
    }
    stops.push_back({place, false, patience, is_first});
    patience = ++seen < kNear ? kFurther : kFar;
  }
  if (lost_other && begun) stops.push_back({facts.lost, false, kFurther});
  // A hub that was cut off and gave up may host again if the other nodes have not found a new hub.
  if (!lost_other && may_host && places.contains(facts.own))
    stops.push_back({facts.own, true, gathering(facts.own, places, false)});
  std::uint32_t strangers = 0;
  const std::uint32_t most = begun ? kMostStrangers : kMostUnknown;
  // The list may be long, and each stop costs time: visit only a few hosts beyond the voters.
  for (std::uint32_t place = 0; place < facts.listed && strangers < most; ++place) {
    if (place == facts.own || places.contains(place) || (begun && place == facts.lost)) continue;
    stops.push_back({place, false, !begun && place == 0 ? kBeginning : kStranger});
    ++strangers;
  }
  return stops;
}

}  // namespace lockstep::rendezvous::hub
