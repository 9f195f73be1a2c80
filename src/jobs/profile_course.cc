#include "jobs/profile_course.h"

#include "base/number_ranges.h"
#include "base/word_list.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::jobs {
namespace {

using status::ProfileState;

// A process with Kineto asks every 5 s.
constexpr std::chrono::seconds kHearing{15};
// A lost connection may come back.
constexpr std::chrono::seconds kSilent{30};
// Bounds what hostile hosts can make this machine ask for.
constexpr std::size_t kMostRanks = 4096;

std::string ranks_words(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", ranges_text(ranks));
}

std::string count_words(std::size_t count) {
  return fmt::format("{} {}", count, count == 1 ? "rank" : "ranks");
}

std::string refusal_words(const status::ProfileAnswer& says) {
  return says.node.empty() ? says.refusal : fmt::format("{}: {}", says.node, says.refusal);
}

std::string reason_words(ProfileState state) {
  switch (state) {
    case ProfileState::absent:
      return "no process asks for profiles: PyTorch without Kineto, or not imported yet";
    case ProfileState::waiting:
      return "the order was not fetched in time";
    case ProfileState::busy:
      return "already takes another profile";
    case ProfileState::ordered:
      return "no trace was written in time; --timeout waits longer, and --seconds needs no steps "
             "of an optimizer";
    case ProfileState::gone:
      return "has ended";
    case ProfileState::written:
      return "the trace was not fetched in time";
  }
  return {};
}

}  // namespace

Status ProfileCourse::begin(const ProfileAnswers& answers, std::int64_t id,
                            const std::vector<int>& wanted, io::TimePoint now,
                            std::chrono::seconds limit) {
  id_ = id;
  began_ = now;
  until_ = now + limit;
  const std::set<int> named(wanted.begin(), wanted.end());
  for (const auto& [host, why] : answers.silent)
    without_.push_back(why);
  bool left_out = false;
  Error problem{.code = Errc::unavailable, .message = {}, .hint = {}};
  if (!without_.empty()) problem.message = without_.front();
  // Containers of one machine may answer for each other, so an answer may come twice.
  for (const auto& [host, says] : answers.agents) {
    if (!says.refusal.empty()) {
      problem.message = says.refusal;
      problem.hint = says.hint;
      const std::string line = refusal_words(says);
      if (std::find(without_.begin(), without_.end(), line) == without_.end())
        without_.push_back(line);
    }
    for (const status::RankProfile& each : says.ranks) {
      if (!named.empty() && !named.contains(each.rank)) continue;
      if (ranks_.size() < kMostRanks)
        ranks_.try_emplace(each.rank, Rank{.host = host, .state = each.state, .heard = now});
      else if (!ranks_.contains(each.rank))
        left_out = true;
    }
  }
  if (left_out)
    without_.push_back(fmt::format("only {} ranks: --ranks chooses others", kMostRanks));
  for (const int rank : named)
    if (!ranks_.contains(rank)) failed(rank, "does not run, or no agent answers for it");
  if (!ranks_.empty()) return {};
  if (problem.message.empty())
    problem.message = answers.agents.empty() ? "no agent of the job answers"
                      : named.empty()        ? "no rank runs now"
                                             : "no rank of --ranks runs";
  return Failure(std::move(problem));
}

std::vector<TraceThere> ProfileCourse::feed(const ProfileAnswers& answers, io::TimePoint now) {
  std::vector<TraceThere> found;
  auto silent_hosts = answers.silent;
  for (const auto& [host, says] : answers.agents) {
    // The missing ranks of the host may be those of this agent.
    if (says.late) silent_hosts.try_emplace(host, refusal_words(says));
    for (const status::RankProfile& each : says.ranks) {
      const auto rank = ranks_.find(each.rank);
      // A host speaks for its own ranks only.
      if (rank == ranks_.end() || rank->second.host != host) continue;
      rank->second.state = each.state;
      rank->second.heard = now;
      rank->second.silent.reset();
      if (each.state == ProfileState::written && is_open(each.rank))
        found.push_back({.host = host, .folder = says.folder, .profile = id_, .rank = each.rank});
    }
  }
  for (auto& [rank, known] : ranks_) {
    if (known.heard == now || !is_open(rank)) continue;
    const auto silent = silent_hosts.find(known.host);
    if (silent == silent_hosts.end())
      known.state = ProfileState::gone;  // the host answers, and has no agent with this profile
    else if (now - known.silent.emplace(known.silent.value_or(now)) >= kSilent)
      failed(rank, silent->second);
  }
  return found;
}

void ProfileCourse::lasts_longer(io::Duration time) {
  began_ += time;
  until_ += time;
  for (auto& [rank, known] : ranks_)
    if (known.silent) *known.silent += time;
}

std::set<int> ProfileCourse::hosts() const {
  std::set<int> hosts;
  for (const auto& [rank, known] : ranks_)
    if (is_open(rank)) hosts.insert(known.host);
  return hosts;
}

std::set<int> ProfileCourse::held_hosts() const {
  std::set<int> hosts;
  for (const auto& [rank, known] : ranks_)
    if (!failed_.contains(rank)) hosts.insert(known.host);
  return hosts;
}

bool ProfileCourse::may_write(int rank, ProfileState state, io::TimePoint now) const {
  if (!is_open(rank) || state == ProfileState::gone) return false;
  return state != ProfileState::absent || now < began_ + kHearing;
}

bool ProfileCourse::is_over(io::TimePoint now) const {
  return is_late(now) || std::none_of(ranks_.begin(), ranks_.end(), [&](const auto& each) {
           return may_write(each.first, each.second.state, now);
         });
}

std::string ProfileCourse::waits_for() const {
  std::map<ProfileState, std::size_t> counts;
  for (const auto& [rank, known] : ranks_)
    if (is_open(rank)) ++counts[known.state];
  std::vector<std::string> words;
  if (const std::size_t count = counts[ProfileState::ordered])
    words.push_back(count_words(count) + " to finish the profile");
  if (const std::size_t count = counts[ProfileState::waiting] + counts[ProfileState::busy])
    words.push_back(count_words(count) + " to fetch the order");
  if (const std::size_t count = counts[ProfileState::absent])
    words.push_back(count_words(count) + " to ask for orders");
  return words.empty() ? "" : "waiting for " + join_some(words, words.size());
}

std::vector<std::string> ProfileCourse::missing() const {
  std::map<ProfileState, std::vector<int>> groups;
  for (const auto& [rank, known] : ranks_)
    if (is_open(rank)) groups[known.state].push_back(rank);
  std::vector<std::string> lines = without_;
  std::map<std::string, std::vector<int>> reasons;
  for (const auto& [rank, why] : failed_)
    reasons[why].push_back(rank);
  for (const auto& [why, ranks] : reasons)
    lines.push_back(fmt::format("{}: {}", ranks_words(ranks), why));
  for (const auto& [state, ranks] : groups)
    lines.push_back(fmt::format("{}: {}", ranks_words(ranks), reason_words(state)));
  return lines;
}

}  // namespace lockstep::jobs
