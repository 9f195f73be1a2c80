#include "jobs/rented/owned_view_core.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <utility>

namespace lockstep::jobs::rented {
namespace {

using Kind = OwnedViewAction::Kind;
using End = link::ChannelEnd::Kind;
using std::chrono::seconds;
using Kinds = std::vector<Kind>;

Kinds kinds(const OwnedViewActions& actions) {
  Kinds kinds;
  for (const OwnedViewAction& action : actions)
    kinds.push_back(action.kind);
  return kinds;
}

class OwnedViewCoreTest : public ::testing::Test {
 protected:
  OwnedViewCore core(OwnedViewCore::Settings settings = {}) {
    settings.cluster = "lab";
    settings.host = "me@h";
    return OwnedViewCore(settings);
  }
  static link::ChannelEnd lost() { return {.kind = End::lost, .why = "me@h: broken"}; }
  // Returns the core of a view that runs on the host.
  OwnedViewCore running(OwnedViewCore::Settings settings = {}) {
    OwnedViewCore made = core(std::move(settings));
    EXPECT_EQ(kinds(made.start(now_)), Kinds{Kind::open});
    (void)made.on_started(now_);
    (void)made.on_output();
    return made;
  }
  // The next tick that is due.
  Kinds tick(OwnedViewCore& core) {
    EXPECT_NE(core.next_tick(), io::TimePoint::max());
    now_ = core.next_tick();
    return kinds(core.tick(now_));
  }

  io::TimePoint now_{};
};

TEST_F(OwnedViewCoreTest, TheViewEndsWithTheViewOnTheHost) {
  OwnedViewCore core = running();
  EXPECT_EQ(core.next_tick(), io::TimePoint::max());
  EXPECT_EQ(kinds(core.on_end({.kind = End::exited, .code = 7}, now_)), Kinds{Kind::finish});
  EXPECT_EQ(core.outcome().code, 7);
  EXPECT_EQ(core.next_tick(), io::TimePoint::max());
}

TEST_F(OwnedViewCoreTest, AHostThatWasNeverReachedIsNotAwaited) {
  OwnedViewCore core = this->core();
  (void)core.start(now_);
  EXPECT_EQ(kinds(core.on_end(lost(), now_)), Kinds{Kind::finish});
  EXPECT_FALSE(core.outcome().code);
  EXPECT_EQ(core.outcome().lost, "me@h: broken");
}

TEST_F(OwnedViewCoreTest, ALostLinkIsOpenedAgainAndOneLineSaysSo) {
  OwnedViewCore core = running();
  const auto actions = core.on_end(lost(), now_);
  ASSERT_EQ(kinds(actions), Kinds{Kind::say});
  EXPECT_EQ(actions[0].text, "me@h: broken; the job needs no connection, trying again for 60 s");
  EXPECT_EQ(tick(core), Kinds{Kind::open});
  EXPECT_EQ(kinds(core.on_end(lost(), now_)), Kinds{}) << "once";
  EXPECT_EQ(tick(core), Kinds{Kind::open});
  EXPECT_EQ(kinds(core.on_started(now_)), Kinds{});
  const auto back = core.on_output();
  ASSERT_EQ(kinds(back), Kinds{Kind::say});
  EXPECT_EQ(back[0].text, "me@h is back");
  EXPECT_EQ(kinds(core.on_end({.kind = End::exited, .code = 0}, now_)), Kinds{Kind::finish});
  EXPECT_EQ(core.outcome().code, 0);
}

TEST_F(OwnedViewCoreTest, WordsOfTheHostAreMadePrintable) {
  const std::string hostile = "\x1b[2J" + std::string(100'000, 'x');
  OwnedViewCore core = running();
  const auto actions = core.on_end({.kind = End::refused, .why = hostile}, now_);
  ASSERT_EQ(kinds(actions), Kinds{Kind::say});
  EXPECT_EQ(actions[0].text.find("me@h: \\x1b[2Jxxx"), 0U) << actions[0].text;
  EXPECT_LT(actions[0].text.size(), 3000U);
  OwnedViewCore unmet = this->core();
  (void)unmet.start(now_);
  (void)unmet.on_end({.kind = End::lost, .why = hostile}, now_);
  EXPECT_EQ(unmet.outcome().lost.find("\\x1b[2Jxxx"), 0U);
}

TEST_F(OwnedViewCoreTest, AViewWithoutOutputIsBackAfterAWhile) {
  OwnedViewCore core = running();
  (void)core.on_end(lost(), now_);
  (void)tick(core);
  (void)core.on_started(now_);
  EXPECT_EQ(tick(core), Kinds{Kind::say});
  EXPECT_EQ(core.next_tick(), io::TimePoint::max());
}

TEST_F(OwnedViewCoreTest, ASilentHostIsGivenUpAfterAMinuteWithoutACode) {
  OwnedViewCore core = running({.met = true});
  const io::TimePoint begin = now_;
  Kinds last = kinds(core.on_end(lost(), now_));
  int opened = 0;
  while (last != Kinds{Kind::finish}) {
    last = tick(core);
    if (last != Kinds{Kind::open}) continue;
    ++opened;
    (void)core.on_end({.kind = End::lost, .why = "me@h: timed out"}, now_);
  }
  EXPECT_EQ(now_ - begin, OwnedViewCore::kPatience);
  EXPECT_GT(opened, 10);
  EXPECT_LT(opened, 25) << "each may be a log-in";
  EXPECT_FALSE(core.outcome().code);
  EXPECT_EQ(core.outcome().lost, "me@h: timed out");
}

TEST_F(OwnedViewCoreTest, ALogInThatHangsEndsWithThePatience) {
  OwnedViewCore core = running();
  (void)core.on_end(lost(), now_);
  EXPECT_EQ(tick(core), Kinds{Kind::open});
  EXPECT_EQ(tick(core), Kinds{Kind::finish});
  EXPECT_FALSE(core.outcome().code);
}

TEST_F(OwnedViewCoreTest, AViewThatIsKilledThereIsOpenedAgain) {
  OwnedViewCore core = running();
  const auto actions = core.on_end({.kind = End::signaled, .code = SIGTERM}, now_);
  ASSERT_EQ(kinds(actions), Kinds{Kind::say});
  EXPECT_EQ(actions[0].text.find("me@h: the view there was killed by SIGTERM; "), 0U);
  EXPECT_EQ(tick(core), Kinds{Kind::open});
  EXPECT_FALSE(core.canceled());
}

TEST_F(OwnedViewCoreTest, CtrlCCancelsAndAThirdOneLeaves) {
  OwnedViewCore core = running();
  EXPECT_EQ(kinds(core.on_signal(SIGTERM)), (Kinds{Kind::say, Kind::cancel}));
  EXPECT_EQ(kinds(core.on_signal(SIGINT)), Kinds{Kind::cancel});
  EXPECT_EQ(kinds(core.on_signal(SIGINT)), Kinds{Kind::finish});
  EXPECT_EQ(core.outcome().canceled_by, SIGTERM);
  EXPECT_EQ(core.outcome().signal, SIGINT);
  EXPECT_FALSE(core.outcome().code);
  EXPECT_EQ(kinds(core.on_end(lost(), now_)), Kinds{});
}

TEST_F(OwnedViewCoreTest, ACancellationThatComesBeforeTheViewIsCarriedOut) {
  OwnedViewCore core = this->core();
  (void)core.start(now_);
  EXPECT_EQ(kinds(core.on_signal(SIGINT)), Kinds{Kind::say});
  EXPECT_EQ(kinds(core.on_started(now_)), Kinds{Kind::cancel});
  // The view there did not handle signals yet.
  EXPECT_EQ(kinds(core.on_end({.kind = End::signaled, .code = SIGINT}, now_)), Kinds{});
  EXPECT_EQ(tick(core), Kinds{Kind::open});
  EXPECT_TRUE(core.must_cancel()) << "the next view cancels the job itself";
  EXPECT_EQ(kinds(core.on_started(now_)), Kinds{});
}

TEST_F(OwnedViewCoreTest, ACancellationWhileTheHostIsAwayWaitsForIt) {
  OwnedViewCore core = running();
  (void)core.on_end(lost(), now_);
  const auto actions = core.on_signal(SIGINT);
  ASSERT_EQ(kinds(actions), Kinds{Kind::say});
  EXPECT_NE(actions[0].text.find("canceled once me@h is back"), std::string::npos);
  EXPECT_EQ(tick(core), Kinds{Kind::open});
  EXPECT_TRUE(core.must_cancel());
  EXPECT_EQ(kinds(core.on_signal(SIGINT)), Kinds{Kind::finish});
  EXPECT_EQ(core.outcome().signal, SIGINT);
}

TEST_F(OwnedViewCoreTest, ACourseThatHasGotCtrlCIsNotCanceledAgain) {
  OwnedViewCore core = running();
  (void)core.on_signal(SIGINT);
  (void)core.on_end(lost(), now_);
  (void)tick(core);
  EXPECT_TRUE(core.must_cancel()) << "the signal may be lost with the link";
  (void)core.on_started(now_);
  core.on_told();
  for (int i = 0; i < 2; ++i) {
    (void)core.on_end(lost(), now_);
    EXPECT_EQ(tick(core), Kinds{Kind::open});
    EXPECT_FALSE(core.must_cancel());
    EXPECT_TRUE(core.canceled());
    EXPECT_EQ(kinds(core.on_started(now_)), Kinds{});
    (void)core.on_output();
  }
  EXPECT_EQ(kinds(core.on_signal(SIGINT)), Kinds{Kind::cancel}) << "hurries the end";
  (void)core.on_end(lost(), now_);
  (void)tick(core);
  EXPECT_TRUE(core.must_cancel());
}

TEST_F(OwnedViewCoreTest, AJobThatIsCanceledFromTheStartNeedsNoSignal) {
  OwnedViewCore core = this->core({.canceled = true});
  (void)core.start(now_);
  EXPECT_TRUE(core.must_cancel());
  EXPECT_EQ(kinds(core.on_started(now_)), Kinds{});
}

TEST_F(OwnedViewCoreTest, AClosedTerminalAndAWaitLeaveTheJobAlone) {
  OwnedViewCore closed = running();
  EXPECT_EQ(kinds(closed.on_signal(SIGCHLD)), Kinds{});
  EXPECT_EQ(kinds(closed.on_signal(SIGHUP)), Kinds{Kind::finish});
  EXPECT_EQ(closed.outcome().signal, SIGHUP);
  OwnedViewCore wait = running({.on_stop = OwnedViewCore::OnStop::leave});
  EXPECT_EQ(kinds(wait.on_signal(SIGINT)), Kinds{Kind::finish});
  EXPECT_FALSE(wait.canceled());
}

}  // namespace
}  // namespace lockstep::jobs::rented
