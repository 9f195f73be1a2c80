#include "jobs/here/profile_course.h"

#include "base/number_ranges.h"
#include "base/word_list.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::jobs::here {
namespace {

using status::ProfileState;

// A process with Kineto asks every 5 s.
constexpr std::chrono::seconds kHearing{15};

std::string ranks_words(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", ranges_text(ranks));
}

std::string count_words(std::size_t count) {
  return fmt::format("{} {}", count, count == 1 ? "rank" : "ranks");
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
  }
  return {};
}

}  // namespace

std::vector<int> ProfileCourse::feed(const std::vector<status::RankProfile>& ranks) {
  for (const status::RankProfile& each : ranks)
    states_[each.rank] = each.state;
  std::vector<int> open;
  for (const auto& [rank, state] : states_)
    if (is_open(rank)) open.push_back(rank);
  return open;
}

bool ProfileCourse::may_write(int rank, ProfileState state, io::TimePoint now) const {
  if (!is_open(rank) || state == ProfileState::gone) return false;
  return state != ProfileState::absent || now < began_ + kHearing;
}

bool ProfileCourse::is_over(io::TimePoint now) const {
  return now >= until_ || std::none_of(states_.begin(), states_.end(), [&](const auto& each) {
           return may_write(each.first, each.second, now);
         });
}

std::string ProfileCourse::waits_for() const {
  std::map<ProfileState, std::size_t> counts;
  for (const auto& [rank, state] : states_)
    if (is_open(rank)) ++counts[state];
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
  for (const auto& [rank, state] : states_)
    if (is_open(rank)) groups[state].push_back(rank);
  std::vector<std::string> lines;
  for (const auto& [rank, why] : failed_)
    lines.push_back(fmt::format("rank {}: {}", rank, why));
  for (const auto& [state, ranks] : groups)
    lines.push_back(fmt::format("{}: {}", ranks_words(ranks), reason_words(state)));
  return lines;
}

}  // namespace lockstep::jobs::here
