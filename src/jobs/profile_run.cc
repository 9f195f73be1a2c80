#include "jobs/profile_run.h"

#include "jobs/profile_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace lockstep::jobs {
namespace {

using What = status::ProfileQuery::What;

// A look at hosts is a request to each of them.
constexpr std::chrono::milliseconds kLook{500};
constexpr std::chrono::milliseconds kLookAfar{2000};
constexpr std::chrono::seconds kSayAgain{10};
// Agents take a command that does not look for 180 s for a killed one (agent/profile_desk.cc).
constexpr std::chrono::seconds kHoldAgain{20};

// A signal has stopped this command.
bool is_stop(const Error& error) {
  return error.code == Errc::canceled && error.sys != 0;
}

class ProfileRun {
 public:
  ProfileRun(Job& job, std::int64_t id, const std::string& output, ProfileCourse& course,
             const ProfileWorld& world)
      : job_(job), id_(id), output_(output), course_(course), world_(world) {}

  // Follows the profile until all traces are there, or no more can come. Returns as run_profile().
  Result<int> follow();

 private:
  bool must_hold() const { return world_.now() - held_ >= kHoldAgain; }
  Result<ProfileAnswers> look(const std::set<int>& hosts) const {
    return job_.profile({.query = {.what = What::look, .id = id_}, .hosts = hosts});
  }
  int bring(const std::vector<TraceThere>& traces);
  Status hold();
  Status look_while_fetching(int rank);
  bool may_say();
  std::chrono::milliseconds pause() const;

  Job& job_;
  const std::int64_t id_;
  const std::string& output_;
  ProfileCourse& course_;
  const ProfileWorld& world_;
  io::TimePoint said_;
  io::TimePoint held_;  // after the last look at all hosts that are not given up
};

Result<int> ProfileRun::follow() {
  held_ = world_.now();
  said_ = held_;
  while (true) {
    const bool late = course_.is_late(world_.now());
    if (!late && course_.is_over(world_.now())) return 0;
    // The last look comes when the time is over: the end of a profile removes what was not fetched.
    if (const int signal = world_.wait(late ? std::chrono::milliseconds(0) : pause()); signal != 0)
      return signal;
    const bool holds = must_hold();
    LOCKSTEP_TRY_ASSIGN(const auto answers, look(holds ? course_.held_hosts() : course_.hosts()));
    if (holds) held_ = world_.now();
    if (const int signal = bring(course_.feed(answers, world_.now())); signal != 0) return signal;
    if (late) return 0;
    if (!course_.is_over(world_.now()) && may_say()) world_.say(course_.waits_for());
  }
}

// Brings the traces, which takes nothing off the time of the profile. Returns the signal that
// stopped this; 0: none.
int ProfileRun::bring(const std::vector<TraceThere>& traces) {
  for (const TraceThere& trace : traces) {
    // A fetch that fails may take minutes, and nothing looks at the agents meanwhile.
    if (const Status held = hold(); !held) return held.error().sys;
    const io::TimePoint from = world_.now();
    const Status brought = job_.bring_trace(trace, trace_path(output_, trace.rank), [this, &trace] {
      return look_while_fetching(trace.rank);
    });
    course_.lasts_longer(world_.now() - from);
    if (brought)
      course_.taken(trace.rank);
    else if (is_stop(brought.error()))
      return brought.error().sys;
    else
      course_.failed(trace.rank, brought.error().message);
  }
  return 0;
}

// Keeps the agents from giving the profile to another command while this one fetches.
Status ProfileRun::hold() {
  if (!must_hold()) return {};
  const auto answers = look(course_.held_hosts());
  held_ = world_.now();
  if (!answers && is_stop(answers.error())) return Failure(answers.error());
  return {};
}

Status ProfileRun::look_while_fetching(int rank) {
  if (may_say()) world_.say(fmt::format("fetching the trace of rank {}", rank));
  return hold();
}

// Returns true at most once in kSayAgain.
bool ProfileRun::may_say() {
  const io::TimePoint now = world_.now();
  if (now - said_ < kSayAgain) return false;
  said_ = now;
  return true;
}

std::chrono::milliseconds ProfileRun::pause() const {
  return std::max<std::chrono::milliseconds>(job_.pause(),
                                             job_.record().nodes.empty() ? kLook : kLookAfar);
}

}  // namespace

Result<int> run_profile(Job& job, const WantedProfile& wanted, const std::string& output,
                        ProfileCourse& course, const ProfileWorld& world) {
  const auto begun =
      job.profile({.query = {.what = What::start, .id = wanted.id, .wish = wanted.wish}});
  const Status known = begun ? course.begin(*begun, wanted.id, wanted.ranks, world.now(),
                                            std::chrono::seconds(wanted.wish.limit))
                             : Failure(begun.error());
  auto ended =
      known ? ProfileRun(job, wanted.id, output, course, world).follow() : Failure(known.error());
  // Tell all hosts of the end, also after a start that was stopped: some may have begun, and their
  // answers were lost.
  (void)job.profile({.query = {.what = What::end, .id = wanted.id}});
  if (!ended && is_stop(ended.error())) return ended.error().sys;
  return ended;
}

}  // namespace lockstep::jobs
