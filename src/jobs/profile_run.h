// Takes a profile of a job: the order, the looks, the fetches and the end.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "jobs/job.h"
#include "jobs/profile_course.h"
#include "proc/signals.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::jobs {

// What a profile needs beside the job. A test gives stand-ins.
struct ProfileWorld {
  std::function<io::TimePoint()> now = io::Clock::now;
  // Waits. Returns the signal that stopped the wait; 0: none.
  std::function<int(std::chrono::milliseconds)> wait = proc::take_stop_signal;
  // Tells the user what is waited for.
  std::function<void(const std::string& line)> say = [](const std::string&) {};
};

struct WantedProfile {
  std::int64_t id = 0;  // no other profile of the job may have had it
  status::ProfileWish wish = {};
  std::vector<int> ranks = {};  // those of the wish; empty: all
};

// Takes the profile, and brings the traces to the folder `output` as rank-N.json. `course` knows
// the traces that were brought, and why others were not. Returns the signal that stopped the
// profile; 0: none. Fails if no agent has begun.
Result<int> run_profile(Job& job, const WantedProfile& wanted, const std::string& output,
                        ProfileCourse& course, const ProfileWorld& world);

}  // namespace lockstep::jobs
