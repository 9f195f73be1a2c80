#include "rendezvous/hub/coordinator_words.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace lockstep::rendezvous::hub {
namespace {
using Stage = Roster::Stage;

std::string rejoining(const CurrentRound& round, const Roster& roster) {
  std::vector<std::string> awaited;
  for (const Stage stage : {Stage::placed, Stage::finished}) {
    if (roster.count(stage) > 0) awaited.push_back(roster.names({stage}, true));
  }
  // An idle node of an adopted round may still be stopping its workers.
  if (round.adopted() && roster.count(Stage::idle) > 0)
    awaited.push_back(roster.names({Stage::idle}, false));
  for (const std::string& name : roster.away_names())
    awaited.push_back(name + " (lost its connection)");
  return fmt::format("waiting for {} to stop its workers and join again", join(awaited, ", "));
}

// Returns whose place is free and how long the nodes wait for a replacement.
std::string wanted(const Standing& standing) {
  if (standing.round == nullptr || standing.round->lost().empty()) return {};
  constexpr std::size_t kMost = 4;
  std::vector<std::string> some = standing.round->lost();
  const std::size_t all = some.size();
  some.resize(std::min(all, kMost));
  std::string text = ": a new node may replace a lost one (" + join(some, "; ");
  if (all > kMost) text += fmt::format("; and {} more", all - kMost);
  text += ")";
  Ms left{0};
  for (const auto* member : standing.roster.joined()) {
    const auto until =
        waits_since(*member, standing.forming_since) + Ms(member->offer.join_timeout_ms);
    left = std::max(left, std::chrono::duration_cast<Ms>(until - standing.now));
  }
  return text + fmt::format(" for another {:.0f} s", seconds(left));
}

std::string missing(const Standing& standing, std::size_t joined, const std::string& who) {
  const auto& settings = standing.settings;
  const std::size_t count = settings.min_nodes - joined;
  return fmt::format("{} of {}{} nodes have joined{}, {} missing{}{}", joined,
                     settings.min_nodes < settings.max_nodes ? "at least " : "", settings.min_nodes,
                     who, count, standing.roster.absent(settings.expected, count),
                     wanted(standing));
}

}  // namespace

double seconds(Ms time) {
  return std::chrono::duration<double>(time).count();
}

std::string waiting_words(const Standing& standing) {
  const Roster& roster = standing.roster;
  const CurrentRound* round = standing.round;
  if (const auto* offer = standing.next.offered())
    return fmt::format("{} opens the workers' store for {} nodes",
                       roster.at(offer->first()).called(), offer->ranks.size());
  if (round != nullptr && round->running())
    return fmt::format("round {} runs with {} nodes ({}){}", round->number(), round->size(),
                       roster.names({Stage::placed, Stage::finished}, true), kSpareStatus);
  if (round != nullptr && round->awaits_rejoin(roster)) return rejoining(*round, roster);
  const std::size_t joined = roster.count(Stage::joined);
  const std::string who = joined == 0 ? "" : " (" + roster.names({Stage::joined}, false) + ")";
  if (joined < standing.settings.min_nodes) return missing(standing, joined, who);
  return fmt::format("{} nodes have joined{}, last call for up to {}", joined, who,
                     standing.settings.max_nodes);
}

std::string barrier_words(const Standing& standing) {
  const std::size_t running_on = standing.roster.count(Stage::placed);
  if (standing.round == nullptr || !standing.round->running() || running_on == 0) return {};
  return fmt::format("the workers of {} of {} nodes to end: {}", running_on, standing.round->size(),
                     standing.roster.names({Stage::placed}, true));
}

}  // namespace lockstep::rendezvous::hub
