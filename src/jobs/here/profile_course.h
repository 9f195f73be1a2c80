// What `lockstep profile` waits for, rank by rank, and for how long. Pure: given answers, files and
// times.
#pragma once

#include "io/loop.h"
#include "status/profile_answer.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace lockstep::jobs::here {

class ProfileCourse {
 public:
  // limit: from now, for the whole profile.
  ProfileCourse(io::TimePoint now, std::chrono::seconds limit) : began_(now), until_(now + limit) {}

  // Takes the agent's answer. Returns ranks whose trace may be finished.
  std::vector<int> feed(const std::vector<status::RankProfile>& ranks);
  // A rank's trace has been taken.
  void taken(int rank) { taken_.insert(rank); }

  // A rank's trace cannot be taken.
  void failed(int rank, const std::string& why) { failed_[rank] = why; }

  bool is_over(io::TimePoint now) const;
  // Returns what is waited for, in one line: "2 ranks take steps, 1 rank is not heard yet".
  std::string waits_for() const;
  const std::set<int>& traces() const { return taken_; }
  // Returns a line for each group of ranks without a trace, with the reason.
  std::vector<std::string> missing() const;

 private:
  bool is_open(int rank) const { return !taken_.contains(rank) && !failed_.contains(rank); }
  // Returns whether the rank may still write a trace.
  bool may_write(int rank, status::ProfileState state, io::TimePoint now) const;

  io::TimePoint began_;
  io::TimePoint until_;
  std::map<int, status::ProfileState> states_;
  std::set<int> taken_;
  std::map<int, std::string> failed_;
};

}  // namespace lockstep::jobs::here
