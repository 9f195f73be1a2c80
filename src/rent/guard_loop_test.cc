#include "rent/guard_loop.h"

#include "base/error_testing.h"
#include "rent/fake_world_testing.h"
#include "rent/guard.h"
#include "rent/guard_files.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep::rent {
namespace {

using Phase = machine::LeaseState::Phase;
using Stage = cloud::RentedJob::Stage;

constexpr std::int64_t kHour = 3'600'000;
constexpr std::int64_t kLastLook = GuardPace{}.poll_ms;  // the guard sees that nothing is left

// A guard over fakes. Pauses take no time, so a test sees hours. Every machine answers `lease`.
class GuardLoop : public testing::FakeWorld {
 protected:
  // Keeps a rental that the guard here has to watch, with machines that a client has met.
  cloud::Rental watched(const std::string& cluster, std::int64_t ends_in_ms, int machines = 1) {
    cloud::Rental rental = rented(cluster);
    rental.terms.guard = "here";
    rental.ends_ms = web->now + ends_in_ms;
    cloud::Attempt& attempt = rental.attempts[0];
    attempt.asked_ms = web->now;
    attempt.count = machines;
    attempt.machines[0].host_key = "ssh-ed25519 AAAA";
    for (int node = 1; node < machines; ++node) {
      cloud::Held next = attempt.machines[0];
      next.node = node;
      next.machine.id += std::to_string(node);
      one->machines.push_back(next.machine);
      attempt.machines.push_back(next);
    }
    EXPECT_TRUE(world->journal().keep(rental));
    return rental;
  }
  void give_job(const cloud::Rental& rental, bool succeeded = false) {
    cloud::RentedJob job;
    job.rental = rental.id;
    job.cluster = rental.cluster;
    job.folder = "/";
    job.stage = Stage::working;
    job.succeeded = succeeded;
    EXPECT_TRUE(world->journal().keep_job(job));
  }
  cloud::RentedJob job() { return cloud::Journal::open(folder + "/lockstep")->jobs()->at(0); }

  // Runs the guard for at most this many pauses. Returns its log.
  std::string guard(int most_pauses = 100'000) {
    web->pauses_left = most_pauses;
    loop.emplace(std::move(world), GuardPace{},
                 Guard::Reach{.open = [this]() -> Result<std::unique_ptr<OnDemand>> {
                                ++reads;
                                const std::int64_t now = web->now;
                                auto again = make_world();
                                web->now = now;
                                web->pauses_left = 100;
                                return again;
                              },
                              .leases = [this](const std::vector<hosts::HostPlace>& places)
                                  -> Result<std::vector<LeaseAnswer>> {
                                std::vector<LeaseAnswer> answers;
                                for (const hosts::HostPlace& place : places) {
                                  asked.push_back(place.name);
                                  answers.push_back(place.name == off ? LeaseAnswer{.state = ending}
                                                                      : lease);
                                }
                                return answers;
                              },
                              .follower = [this](const std::string& rental) -> Result<proc::Child> {
                                followed.push_back(rental);
                                if (!starts)
                                  return fail(Errc::unavailable, "no process can be started");
                                proc::SpawnSpec spec;
                                spec.executable = "/bin/true";
                                spec.argv = {"true"};
                                return proc::spawn(spec);
                              }});
    ::testing::internal::CaptureStdout();
    done = loop->run(io::Fd());
    return ::testing::internal::GetCapturedStdout();
  }
  static bool has(const std::string& log, const char* words) {
    return log.find(words) != std::string::npos;
  }

  Status done;
  std::optional<Guard> loop;  // owns the fakes
  LeaseAnswer lease = {.state = {.phase = Phase::running}};
  machine::LeaseState ending = {.phase = Phase::ending, .why = "idle for 600 s"};
  std::string off;  // the node that powers off, "a-1"
  bool starts = true;
  int reads = 0;  // how often the credentials were read again
  std::vector<std::string> asked;
  std::vector<std::string> followed;
};

TEST_F(GuardLoop, WithoutMachinesItEndsAtOnceUnlessACommandNeedsIt) {
  const auto use = lock_guard_use(GuardUse::need);
  EXPECT_FALSE(has(guard(3), "nothing is left to guard"));
  EXPECT_EQ(code_of(done), Errc::canceled);
}

TEST_F(GuardLoop, MachinesAreTerminatedAtTheEndOfTheirLeaseAndThenTheGuardEnds) {
  const cloud::Rental rental = watched("a", kHour);
  const std::string log = guard();
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_TRUE(one->machines.empty());
  EXPECT_EQ(web->now, rental.ends_ms + kLastLook);
  EXPECT_GT(asked.size(), 50U);
  EXPECT_TRUE(has(log, "'a': its lease is over; ending it")) << log;
  EXPECT_TRUE(has(log, "'a' is terminated")) << log;
  EXPECT_TRUE(has(log, "nothing is left to guard")) << log;
}

TEST_F(GuardLoop, ARentalOfAnotherGuardIsLeftAlone) {
  (void)rented("a");
  EXPECT_TRUE(has(guard(), "nothing is left to guard"));
  EXPECT_EQ(one->machines.size(), 1U);
}

TEST_F(GuardLoop, OnlyTheMachineThatPowersOffIsTerminated) {
  (void)watched("a", kHour, 2);
  off = "a-1";
  const std::string log = guard(10);
  EXPECT_TRUE(has(log, "'a': idle for 600 s; ending 1 of its machines")) << log;
  ASSERT_EQ(one->machines.size(), 1U);
  EXPECT_EQ(one->machines[0].id, "i-a");
}

TEST_F(GuardLoop, MachinesThatAreGoneAtTheProviderCloseTheirRental) {
  (void)watched("a", kHour);
  lease.error = "a-0: no answer within 60 s";
  one->machines.clear();
  const std::string log = guard();
  EXPECT_TRUE(done);
  EXPECT_TRUE(has(log, "a-0: no answer within 60 s")) << log;
  EXPECT_TRUE(has(log, "nothing of it is left")) << log;
}

TEST_F(GuardLoop, AClientThatHangsWithTheLockDoesNotKeepMachinesBeyondTheirLease) {
  const cloud::Rental rental = watched("a", 60'000);
  RentalLocks client(folder + "/lockstep");
  ASSERT_TRUE(client.take("a"));
  EXPECT_FALSE(has(guard(8), "does not end it"));
  EXPECT_EQ(one->machines.size(), 1U) << "the client has half a minute";
  world = make_world();
  one->machines = {rental.attempts[0].machines[0].machine};
  web->now = rental.ends_ms + 30'000;
  const std::string log = guard(2);
  EXPECT_TRUE(has(log, "the client that holds the lock does not end it")) << log;
  EXPECT_TRUE(one->machines.empty());
  EXPECT_FALSE(kept("a").settled()) << "only the client may change the record";
}

TEST_F(GuardLoop, AProviderThatDoesNotTerminateIsAskedAgainUntilItDoes) {
  (void)watched("a", 10'000);
  one->deaf = true;
  std::string log = guard(200);
  EXPECT_EQ(code_of(done), Errc::canceled);
  EXPECT_TRUE(has(log, "asked again")) << log;
  EXPECT_GT(one->ends, 5);
  EXPECT_FALSE(kept("a").settled());
}

TEST_F(GuardLoop, CredentialsThatTheProviderRefusesAreReadAgain) {
  const cloud::Rental rental = watched("a", 0);
  RentalLocks client(folder + "/lockstep");
  ASSERT_TRUE(client.take("a"));
  web->now += 30'000;
  one->has_keys = false;
  one->no_keys = Errc::denied;
  (void)guard(5);
  EXPECT_EQ(reads, 1) << "the new credentials work";
  EXPECT_GT(one->ends, 0);
}

TEST_F(GuardLoop, AJobWithoutAProcessGetsAFollowerButNotForEver) {
  const cloud::Rental rental = watched("a", kHour);
  give_job(rental);
  const std::string log = guard();
  EXPECT_EQ(followed, std::vector<std::string>(kMostFollowers, rental.id));
  EXPECT_TRUE(has(log, "the machines are left to their lease")) << log;
  EXPECT_EQ(job().stage, Stage::ended);
  EXPECT_EQ(job().code, 1);
  EXPECT_EQ(job().note, "8 followers ended before the job did");
  EXPECT_EQ(web->now, rental.ends_ms + kLastLook);
  EXPECT_TRUE(one->machines.empty());
}

TEST_F(GuardLoop, ANotedSuccessOutlivesItsFollowers) {
  give_job(watched("a", kHour), true);
  const std::string log = guard();
  EXPECT_EQ(job().stage, Stage::ended) << log;
  EXPECT_EQ(job().code, 0);
  EXPECT_EQ(job().note, "the job had succeeded");
}

TEST_F(GuardLoop, AClaimedJobGetsNoFollowerAndItsMachinesAreNotAsked) {
  const cloud::Rental rental = watched("a", kHour);
  give_job(rental);
  const auto claim = claim_job(rental.id);
  ASSERT_TRUE(claim);
  (void)guard(50);
  EXPECT_TRUE(followed.empty());
  EXPECT_TRUE(asked.empty()) << "they terminate themselves, and the follower watches them";
  EXPECT_EQ(job().stage, Stage::working);
}

TEST_F(GuardLoop, MachinesAreTerminatedOnTimeAlsoIfNoFollowerStarts) {
  const cloud::Rental rental = watched("a", kHour / 6);
  give_job(rental);
  starts = false;
  const std::string log = guard();
  EXPECT_TRUE(has(log, "'a': its job: no process can be started")) << log;
  EXPECT_TRUE(one->machines.empty());
  EXPECT_EQ(web->now, rental.ends_ms + kLastLook);
}

TEST(GuardPaceTest, TestsMayRunTheGuardFasterWithinLimits) {
  EXPECT_EQ(guard_pace().poll_ms, 10'000);
  setenv("LOCKSTEP_GUARD_SPEED", "100", 1);
  EXPECT_EQ(guard_pace().poll_ms, 100);
  setenv("LOCKSTEP_GUARD_SPEED", "0", 1);
  EXPECT_EQ(guard_pace().poll_ms, 10'000);
  unsetenv("LOCKSTEP_GUARD_SPEED");
}

}  // namespace
}  // namespace lockstep::rent
