#include "rent/guard.h"

#include "base/error_testing.h"
#include "rent/fake_world_testing.h"
#include "rent/guard_desk.h"
#include "rent/guard_files.h"
#include "rent/guard_talk.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace lockstep::rent {
namespace {

class GuardTest : public testing::FakeWorld {};

TEST_F(GuardTest, AGuardLivesForAsLongAsItsLockIsHeld) {
  EXPECT_FALSE(guard_lives());
  auto alive = take_guard_lock(*world);
  ASSERT_TRUE(alive);
  EXPECT_TRUE(guard_lives());
  EXPECT_EQ(code_of(take_guard_lock(*world)), Errc::already_exists);
  alive->reset();
  EXPECT_FALSE(guard_lives());
  EXPECT_EQ(*io::read_file(folder + "/lockstep/guard.lock"), std::to_string(getpid()) + " one\n")
      << "later commands read there whose credentials it has";
}

TEST_F(GuardTest, ACommandThatNeedsTheGuardKeepsItFromItsEnd) {
  const auto alive = take_guard_lock(*world);
  ASSERT_TRUE(alive);
  auto use = need_guard(*world);
  ASSERT_TRUE(use) << "a guard with all credentials runs, so none is started";
  EXPECT_EQ(code_of(lock_guard_use(GuardUse::end)), Errc::already_exists);
  EXPECT_TRUE(need_guard(*world)) << "commands share it";
  use->reset();
  EXPECT_TRUE(lock_guard_use(GuardUse::end));
}

// A guard whose replacement would lose credentials stays, although it lacks some of this process.
TEST_F(GuardTest, AGuardThatHasMoreCredentialsThanThisProcessStays) {
  two->has_keys = true;
  one->has_keys = false;
  const auto alive = take_guard_lock(*world);
  ASSERT_TRUE(alive);
  two->has_keys = false;
  one->has_keys = true;
  EXPECT_TRUE(need_guard(*world));
}

// The requests of clients on other machines, as `lockstep host-guard` answers them.
class GuardDesk : public testing::FakeWorld {
 protected:
  static constexpr const char* kOwner = "0123456789abcdef";

  // Answers a request with this stdin.
  Result<GuardAnswer> answer(const std::vector<std::string>& words, const std::string& input = {}) {
    const std::string path = folder + "/input";
    std::ofstream(path) << input;
    const int before = dup(STDIN_FILENO);
    const io::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    dup2(file.get(), STDIN_FILENO);
    const std::string text = answer_guard_request(words);
    dup2(before, STDIN_FILENO);
    close(before);
    there_ = folder + "/lockstep/guards/" + kOwner + "/lockstep";
    setenv("XDG_STATE_HOME", folder.c_str(), 1);
    return read_guard_answer(text);
  }
  // News about a rental at a provider whose credentials no test has.
  GuardNews news(cloud::Attempt::State state) {
    cloud::Rental rental = rented("a");
    rental.id = "abcdefghij0123456789";
    rental.owner = kOwner;
    rental.attempts[0].offer.provider = "lambda";
    rental.attempts[0].offer.ending = cloud::Ending::with_guard;
    rental.attempts[0].state = state;
    return {.kind = GuardNewsKind::working, .rental = rental, .newest = 1};
  }

  std::string there_;  // the state folder of that client's rentals
};

TEST_F(GuardDesk, OnlyRequestsOfInstallationsAreAnswered) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"ask"}, {"tell"}, {"end", kOwner}, {"ask", kOwner, "aws"}})
    EXPECT_EQ(answer(words).error().message, "a guard takes ask or tell");
  EXPECT_EQ(answer({"tell", "../../etc"}).error().message,
            "that is not the name of an installation");
}

TEST_F(GuardDesk, AHostWithoutCredentialsOfItsOwnGuardsNothing) {
  EXPECT_EQ(answer({"ask", kOwner, "nimbus", "-"}).error().message,
            "that provider is not known there");
  const auto asked = answer({"ask", kOwner, "lambda", "-"});
  ASSERT_FALSE(asked);
  EXPECT_EQ(code_of(asked), Errc::denied);
  EXPECT_NE(asked.error().message.find("no key of"), std::string::npos) << asked.error().message;
  const auto told = answer({"tell", kOwner}, guard_news_text(news(cloud::Attempt::State::running)));
  ASSERT_FALSE(told);
  EXPECT_EQ(code_of(told), Errc::denied) << told.error().message;
  EXPECT_FALSE(cloud::Journal::open(there_)->of_cluster("a-abcdefg")) << "nothing is promised";
}

TEST_F(GuardDesk, NewsWithoutMachinesCloseTheRentalThere) {
  GuardNews over = news(cloud::Attempt::State::gone);
  over.rental.attempts.clear();
  const auto told = answer({"tell", kOwner}, guard_news_text(over));
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_FALSE(told->over);
  EXPECT_GT(told->now_ms, 0);
  const auto kept = cloud::Journal::open(there_)->since(0);
  ASSERT_EQ(kept->size(), 1U);
  EXPECT_EQ(kept->at(0).cluster, "a-abcdefg");
  EXPECT_NE(kept->at(0).closed_ms, 0);
}

TEST_F(GuardDesk, NewsThatCannotBeReadAreRefused) {
  EXPECT_FALSE(answer({"tell", kOwner}, "not JSON"));
  EXPECT_FALSE(answer({"tell", kOwner}, std::string((1UL << 20) + 8192, ' ')));
  GuardNews foreign = news(cloud::Attempt::State::running);
  foreign.rental.owner = "fedcba9876543210";
  EXPECT_FALSE(answer({"tell", kOwner}, guard_news_text(foreign)));
}

}  // namespace
}  // namespace lockstep::rent
