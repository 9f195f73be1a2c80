#include "rent/move_end.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace lockstep::rent {
namespace {

// Notes each call as a line, and refuses where the test says so.
class MoveEndTest : public ::testing::Test {
 protected:
  Status move() {
    const std::vector<hosts::HostPlace> machines = {{.name = "lab-0", .target = {}},
                                                    {.name = "lab-1", .target = {}}};
    return move_end(
        {.guard = [this](std::int64_t ends_ms, GuardNewsKind) { return answer("guard", ends_ms); },
         .leases =
             [this](const std::vector<hosts::HostPlace>& places, std::int64_t ends_ms) {
               std::vector<LeaseAnswer> answers;
               for (const hosts::HostPlace& each : places) {
                 const Status one = answer(each.name, ends_ms);
                 answers.push_back({.error = one ? "" : one.error().message});
               }
               return Result<std::vector<LeaseAnswer>>(std::move(answers));
             },
         .journal = [this](std::int64_t ends_ms) { return answer("journal", ends_ms); }},
        machines, 1, 2);
  }
  Status answer(const std::string& who, std::int64_t ends_ms) {
    calls_ += who + " " + std::to_string(ends_ms) + "\n";
    if (ends_ms == 2 && refuse_.contains(who)) return fail(Errc::unavailable, who + " refuses");
    return {};
  }

  std::set<std::string> refuse_;
  std::string calls_;
};

TEST_F(MoveEndTest, TheJournalComesLast) {
  EXPECT_TRUE(move());
  EXPECT_EQ(calls_, "guard 2\nlab-0 2\nlab-1 2\njournal 2\n");
}

TEST_F(MoveEndTest, AGuardThatRefusesLeavesAllAsItWas) {
  refuse_ = {"guard"};
  EXPECT_EQ(move().error().message, "guard refuses");
  EXPECT_EQ(calls_, "guard 2\n");
}

TEST_F(MoveEndTest, AMachineThatRefusesTakesTheGrantOfTheOthersBack) {
  refuse_ = {"lab-0"};
  EXPECT_EQ(move().error().message, "lab-0 refuses");
  EXPECT_EQ(calls_, "guard 2\nlab-0 2\nlab-1 2\nlab-1 1\nguard 1\n");
}

TEST_F(MoveEndTest, AJournalThatRefusesTakesAllGrantsBack) {
  refuse_ = {"journal"};
  EXPECT_EQ(move().error().message, "journal refuses");
  EXPECT_EQ(calls_, "guard 2\nlab-0 2\nlab-1 2\njournal 2\nlab-0 1\nlab-1 1\nguard 1\n");
}

constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kHourMs = 60 * kMinuteMs;

// A rental that costs 1 USD an hour since time 0.
cloud::Rental rental_until(std::int64_t ends_ms) {
  cloud::Rental rental{.id = "r", .cluster = "lab", .owner = "me"};
  cloud::Attempt attempt{
      .offer = {}, .state = cloud::Attempt::State::running, .machines = {{.machine = {}}}};
  attempt.per_hour = 1'000'000;
  rental.attempts.push_back(attempt);
  rental.ends_ms = ends_ms;
  return rental;
}

TEST(KeptEnd, CountsFromNowAndIsNeverEarlierThanBefore) {
  EXPECT_EQ(kept_end(rental_until(kHourMs), 0, 7200, kMinuteMs).ms, 2 * kHourMs + kMinuteMs);
  EXPECT_EQ(kept_end(rental_until(kHourMs), 0, 60, kMinuteMs).ms, kHourMs);
}

TEST(KeptEnd, ABudgetPaysForNoMore) {
  cloud::Rental rental = rental_until(kHourMs);
  rental.terms.budget = 3'000'000;
  EXPECT_EQ(kept_end(rental, 0, 7200, kHourMs).ms, 3 * kHourMs);
  EXPECT_EQ(kept_end(rental, 0, 20'000, kHourMs).ms, 3 * kHourMs);
  EXPECT_FALSE(kept_end(rental, 0, 20'000, kHourMs).fixed);
}

TEST(KeptEnd, TheProvidersOwnEndIsNotMoved) {
  const KeptEnd kept = kept_end(rental_until(kHourMs), 2 * kHourMs, 20'000, kMinuteMs);
  EXPECT_EQ(kept.ms, 2 * kHourMs);
  EXPECT_TRUE(kept.fixed);
  EXPECT_FALSE(kept_end(rental_until(kHourMs), 2 * kHourMs, 3600, kMinuteMs).fixed);
}

}  // namespace
}  // namespace lockstep::rent
