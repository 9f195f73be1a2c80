// What `lockstep profile` waits for, rank by rank, and for how long. Pure: given answers, results
// of fetches, and times.
#pragma once

#include "io/loop.h"
#include "jobs/job.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::jobs {

class ProfileCourse {
 public:
  // Takes the answers to the start. wanted: ranks that the user has named; empty: all. limit: from
  // now, for the whole profile. The error says why no agent has begun.
  Status begin(const ProfileAnswers& answers, std::int64_t id, const std::vector<int>& wanted,
               io::TimePoint now, std::chrono::seconds limit);

  // Takes the answers to a look. Returns finished traces that were not taken before.
  std::vector<TraceThere> feed(const ProfileAnswers& answers, io::TimePoint now);
  // A rank's trace has been taken.
  void taken(int rank) { taken_.insert(rank); }
  // A rank's trace cannot be taken.
  void failed(int rank, const std::string& why) { failed_[rank] = why; }

  // The time of a fetch counts against no limit.
  void lasts_longer(io::Duration time);
  // Returns whether the time of the profile is over.
  bool is_late(io::TimePoint now) const { return now >= until_; }
  // Returns the same, or that no further trace can come.
  bool is_over(io::TimePoint now) const;
  // Returns the hosts whose ranks are waited for.
  std::set<int> hosts() const;
  // Returns these hosts, and those whose traces are here: another command must not begin a profile
  // there yet. A host that is given up would only delay the others.
  std::set<int> held_hosts() const;
  // Returns what is waited for, in one line: "2 ranks take steps, 1 rank is not heard yet".
  std::string waits_for() const;
  const std::set<int>& traces() const { return taken_; }
  // Returns a line for each host and each group of ranks without a trace, with the reason.
  std::vector<std::string> missing() const;

 private:
  struct Rank {
    int host = 0;
    status::ProfileState state = status::ProfileState::absent;
    io::TimePoint heard = {};                  // when the rank's agent answered last
    std::optional<io::TimePoint> silent = {};  // since when its host does not
  };
  bool is_open(int rank) const { return !taken_.contains(rank) && !failed_.contains(rank); }
  // Returns whether the rank may still write a trace.
  bool may_write(int rank, status::ProfileState state, io::TimePoint now) const;

  std::int64_t id_ = 0;
  io::TimePoint began_;
  io::TimePoint until_;
  std::vector<std::string> without_;  // hosts and ranks that have not begun, a line each
  std::map<int, Rank> ranks_;
  std::set<int> taken_;
  std::map<int, std::string> failed_;
};

}  // namespace lockstep::jobs
