#include "rent/guard_plan.h"

#include <gtest/gtest.h>

namespace lockstep::rent {
namespace {

using cloud::Attempt;
using cloud::Held;
using cloud::Rental;
using Phase = machine::LeaseState::Phase;
using What = GuardPlan::What;

constexpr std::int64_t kStart = 1'800'000'000'000;
constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr GuardPace kPace;

Held met(const char* id, int node) {
  Held held;
  held.machine.id = id;
  held.node = node;
  held.host_key = "ssh-ed25519 AAAA";
  return held;
}

Rental two_machines() {
  Rental rental;
  rental.id = "abcdefghij0123456789";
  rental.cluster = "lab";
  rental.terms.guard = "here";
  rental.created_ms = kStart;
  rental.ends_ms = kStart + 24 * kHour;
  for (const int node : {1, 0}) {
    Attempt attempt;
    attempt.node = node;
    attempt.state = Attempt::State::running;
    attempt.asked_ms = kStart;
    attempt.machines = {met(node == 0 ? "a" : "b", node)};
    rental.attempts.push_back(attempt);
  }
  return rental;
}

MachineWord idle_word(std::int64_t said_ms, std::int64_t idle_ms) {
  MachineWord word;
  word.said_ms = said_ms;
  word.state.phase = Phase::running;
  word.state.idle_ms = idle_ms;
  word.state.idle_limit_ms = 10 * kMinute;
  return word;
}

What what(const Rental& rental, std::int64_t now, const MachineWords& words = {}) {
  return guard_plan(rental, words, now, kPace).what;
}

// A client stopped with its lock while renting, after `down` was asked for.
TEST(GuardPlan, WhatNobodyWantsEndsWhoeverHoldsItOnceItsLeaseIsOver) {
  Rental rental = two_machines();
  rental.wanted = false;
  const auto plan = [&](std::int64_t now) { return guard_plan(rental, {}, now, kPace); };
  EXPECT_EQ(plan(kStart + kHour).what, What::give_back);
  EXPECT_FALSE(plan(kStart + kHour).forced);
  EXPECT_FALSE(plan(rental.ends_ms).forced);
  EXPECT_TRUE(plan(rental.ends_ms + kPace.held_lock_ms).forced);
}

TEST(GuardPlan, EndsALeaseAtItsEndAndNotBefore) {
  Rental rental = two_machines();
  EXPECT_EQ(what(rental, rental.ends_ms - 1), What::wait);
  EXPECT_EQ(what(rental, rental.ends_ms), What::give_back);
  EXPECT_FALSE(guard_plan(rental, {}, rental.ends_ms, kPace).forced);
  // The guard wakes up long afterwards, and a hanging client holds the lock.
  EXPECT_TRUE(guard_plan(rental, {}, rental.ends_ms + 9 * kHour, kPace).forced);
  rental.ends_ms += kHour;  // lockstep keep
  EXPECT_EQ(what(rental, rental.ends_ms - kHour), What::wait);
  rental.closed_ms = kStart;
  EXPECT_EQ(what(rental, rental.ends_ms + kHour), What::wait);
}

TEST(GuardPlan, EndsWhatNobodyWantsAndClosesWhatIsGone) {
  Rental rental = two_machines();
  rental.wanted = false;
  EXPECT_EQ(what(rental, kStart), What::give_back);
  EXPECT_FALSE(guard_plan(rental, {}, kStart, kPace).forced);
  rental.wanted = true;
  for (Attempt& attempt : rental.attempts)
    attempt.state = Attempt::State::gone;
  EXPECT_EQ(what(rental, kStart + 2 * kMinute), What::give_back);
}

TEST(GuardPlan, MachinesOfAJobThatIsFollowedAreItsFollowersAffair) {
  Rental rental = two_machines();
  MachineWords words = {{"a", idle_word(kStart, 0)}, {"b", idle_word(kStart, 0)}};
  for (auto& word : words)
    word.second.state.phase = Phase::ending;
  EXPECT_EQ(guard_plan(rental, words, kStart, kPace, true).what, What::wait) << "spot may be taken";
  // Only the guard terminates these machines.
  rental.attempts[0].offer.ending = cloud::Ending::with_guard;
  EXPECT_EQ(guard_plan(rental, words, kStart, kPace, true).what, What::give_back);
  EXPECT_EQ(guard_plan(rental, {}, rental.ends_ms, kPace, true).what, What::give_back);
  for (Attempt& attempt : rental.attempts)
    attempt.state = Attempt::State::gone;
  EXPECT_EQ(guard_plan(rental, {}, kStart + 2 * kMinute, kPace, true).what, What::wait);
  EXPECT_EQ(guard_plan(rental, {}, kStart + 2 * kMinute, kPace).what, What::give_back);
}

TEST(GuardPlan, AClientElsewhereThatWasHeardOfLatelyIsWaitedFor) {
  Rental rental = two_machines();
  rental.told_ms = kStart + kMinute;
  rental.wanted = false;
  EXPECT_EQ(what(rental, rental.told_ms + 29'999), What::wait);
  EXPECT_EQ(what(rental, rental.told_ms + 30'000), What::give_back);
  EXPECT_EQ(what(rental, rental.told_ms - 1), What::give_back) << "the clock was set back";
  rental.wanted = true;
  rental.attempts[0].machines[0].host_key.clear();
  EXPECT_EQ(what(rental, kStart + 21 * kMinute - 1), What::wait);
  EXPECT_EQ(what(rental, kStart + 21 * kMinute), What::give_back);
  rental.told_ms = rental.ends_ms;
  EXPECT_EQ(what(rental, rental.ends_ms), What::give_back) << "the lease ends all the same";
}

TEST(GuardPlan, AGuardElsewhereTakesSilenceForIdleOnlyNearTheEnd) {
  // The user is on another host and may have given the machine work since.
  MachineWord early = idle_word(kStart, 4 * kMinute);
  note_word(early, nullptr, kStart + kMinute, kPace);
  EXPECT_TRUE(is_off(early, kStart + kHour, kPace));
  EXPECT_FALSE(is_off(early, kStart + kHour, kPace, true));
  const MachineWord late = idle_word(kStart, 9 * kMinute);
  EXPECT_TRUE(is_off(late, kStart + kHour, kPace, true));
  EXPECT_FALSE(is_off(late, kStart + kMinute, kPace, true));
}

TEST(GuardPlan, EndsMachinesThatNoClientEverMet) {
  Rental rental = two_machines();
  rental.attempts[0].machines[0].host_key.clear();
  EXPECT_EQ(what(rental, kStart + 19 * kMinute), What::wait);
  EXPECT_EQ(what(rental, kStart + 20 * kMinute), What::give_back);
  // The answer to this launch never came.
  rental = two_machines();
  rental.attempts[1].state = Attempt::State::unknown;
  rental.attempts[1].machines.clear();
  EXPECT_EQ(what(rental, kStart + 19 * kMinute), What::wait);
  EXPECT_EQ(what(rental, kStart + 20 * kMinute), What::give_back);
}

TEST(GuardPlan, EndsAMachineThatIsPoweringOff) {
  const Rental rental = two_machines();
  MachineWords words = {{"b", idle_word(kStart, 0)}};
  words["b"].state.phase = Phase::ending;
  words["b"].state.why = "idle for 600 s";
  const GuardPlan plan = guard_plan(rental, words, kStart, kPace);
  EXPECT_EQ(plan.what, What::end_some);
  EXPECT_EQ(plan.machines, std::vector<std::size_t>{1});  // index by node: a is 0
  EXPECT_EQ(plan.why, "idle for 600 s");
  words["a"] = words["b"];
  EXPECT_EQ(what(rental, kStart, words), What::give_back);
}

TEST(GuardPlan, AMachineThatWasIdleAndIsSilentIsOffWhenItsTimeIsOver) {
  // The machine is idle for four minutes of ten: it is off in six, and gets one more.
  MachineWord word = idle_word(kStart, 4 * kMinute);
  note_word(word, nullptr, kStart + kMinute, kPace);
  EXPECT_FALSE(is_off(word, kStart + 7 * kMinute - 1, kPace));
  EXPECT_TRUE(is_off(word, kStart + 7 * kMinute, kPace));
  word.state.held_ms = kHour;  // lockstep keep
  EXPECT_FALSE(is_off(word, kStart + kHour, kPace));
  word.state.held_ms = 0;
  word.state.idle_limit_ms = 0;  // --autostop never
  EXPECT_FALSE(is_off(word, kStart + 9 * kHour, kPace));
}

TEST(GuardPlan, AMachineThatWasAtWorkAndIsSilentIsLeftUntilItsLeaseEnds) {
  const Rental rental = two_machines();
  MachineWords words = {{"a", idle_word(kStart, 0)}, {"b", {}}};
  note_word(words["a"], nullptr, kStart + kMinute, kPace);
  note_word(words["b"], nullptr, kStart + kMinute, kPace);  // never answered
  EXPECT_EQ(what(rental, kStart + 23 * kHour, words), What::wait);
  words["a"].state.phase = Phase::stopping_jobs;
  EXPECT_EQ(what(rental, kStart + kMinute - 1, words), What::wait);
  EXPECT_EQ(what(rental, kStart + kMinute, words), What::end_some);
}

TEST(GuardPlan, AsksSoonerTowardsTheEndAndPausesLongerAfterFailures) {
  MachineWord word;
  const auto next = [&](std::int64_t idle_ms) {
    const machine::LeaseState said = idle_word(0, idle_ms).state;
    note_word(word, &said, kStart, kPace);
    return word.ask_ms - kStart;
  };
  EXPECT_EQ(next(0), kMinute);
  EXPECT_EQ(next(9 * kMinute), 30'000);
  EXPECT_EQ(next(10 * kMinute), 10'000);
  note_word(word, nullptr, kStart, kPace);
  EXPECT_EQ(word.ask_ms - kStart, 30'000);
  EXPECT_EQ(word.silent_ms, kStart);
  EXPECT_EQ(retry_pause(0, kPace), 0);
  EXPECT_EQ(retry_pause(1, kPace), 10'000);
  EXPECT_EQ(retry_pause(3, kPace), 40'000);
  EXPECT_EQ(retry_pause(90, kPace), 5 * kMinute);
}

}  // namespace
}  // namespace lockstep::rent
