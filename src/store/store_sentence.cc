// What a witness tells, in a sentence for a person.
#include "base/number_ranges.h"
#include "base/text.h"
#include "store/init_facts.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::store {
namespace {

constexpr std::size_t kMostGroups = 3;
constexpr std::size_t kMostRanges = 8;
constexpr std::size_t kMostBytes = 1000;

std::string ranks_text(std::span<const int> ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", ranges_text(ranks, kMostRanges));
}

std::string span_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  return fmt::format("{:.0f} min", seconds / 60);
}

std::string who_waits(const GroupFacts& facts) {
  if (facts.unnamed == 0) return ranks_text(facts.waiting);
  const std::string clients =
      fmt::format("client{}", facts.unnamed == 1 ? "" : "s");  // of unknown rank
  if (facts.waiting.empty()) return fmt::format("{} {}", facts.unnamed, clients);
  return fmt::format("{} and {} more {}", ranks_text(facts.waiting), facts.unnamed, clients);
}

// "which has never connected", of all missing ranks or of some.
std::string fate(const std::vector<int>& some, const std::vector<int>& all,
                 std::string_view has_done) {
  if (some.empty()) return "";
  const std::string_view verb = some.size() == 1 ? "has" : "have";
  if (some.size() == all.size()) return fmt::format(", which {} {}", verb, has_done);
  return fmt::format(" ({} {} {})", ranks_text(some), verb, has_done);
}

std::string whose_key(const GroupFacts& facts) {
  std::string text;
  if (!facts.missing.empty()) {
    text = fmt::format("the key{} of {}", facts.missing.size() == 1 ? "" : "s",
                       ranks_text(facts.missing));
    text += fate(facts.never_connected, facts.missing, "never connected");
    text += fate(facts.departed, facts.missing, "left the store");
  }
  if (facts.missing_inside.empty()) return text;
  if (!text.empty()) text += " and ";
  text +=
      fmt::format("the key{} of the group's own {}", facts.missing_inside.size() == 1 ? "" : "s",
                  ranks_text(facts.missing_inside));
  if (!facts.candidates.empty())
    text += fmt::format(" (among {} of the job)", ranks_text(facts.candidates));
  return text;
}

std::string group_text(const GroupFacts& facts) {
  const bool many = facts.waiting.size() + facts.unnamed > 1;
  std::string text = fmt::format("{}: {} wait{} {} for ", facts.name, who_waits(facts),
                                 many ? "" : "s", span_text(facts.seconds));
  if (facts.kind != InitKey::Kind::barrier) {
    const std::string whose = whose_key(facts);
    return text + (whose.empty() ? "a key of another rank" : whose);
  }
  text += "the other ranks in the barrier after its start";
  if (facts.arrived) text += fmt::format(", where {} have arrived", *facts.arrived);
  return text;
}

}  // namespace

std::string store_sentence(const StoreFacts& facts) {
  std::string text;
  const auto say = [&](const std::string& more) {
    if (!text.empty()) text += "; ";
    text += more;
  };
  if (facts.exception_dump)
    say(fmt::format("the watchdog of rank {} timed out first", *facts.exception_dump));
  for (std::size_t i = 0; i < std::min(facts.groups.size(), kMostGroups); ++i) {
    const GroupFacts& group = facts.groups[i];
    // "default_pg" is a name of PyTorch's. "group 1" has its noun already.
    say((group.name.starts_with("group ") ? "" : "group ") + group_text(group));
  }
  if (facts.groups.size() > kMostGroups)
    say(fmt::format("and {} more groups", facts.groups.size() - kMostGroups));
  if (facts.groups.empty() && !facts.others.empty()) {
    const OtherWait& other = facts.others.front();
    say(fmt::format("{} wait{} {} for the store's key '{}'", ranks_text(other.waiting),
                    other.waiting.size() == 1 ? "s" : "", span_text(other.seconds), other.key));
  }
  return printable(text, kMostBytes);
}

}  // namespace lockstep::store
