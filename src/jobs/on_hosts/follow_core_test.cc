#include "jobs/on_hosts/follow_core.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>

namespace lockstep::jobs::on_hosts {
namespace {

using Kind = FollowAction::Kind;
using Ms = FollowCore::Ms;
using std::chrono::seconds;

const std::string kRunning =
    R"([{"spec":{"id":"aaaa1111","run":["x"]},"state":{"stage":"running"}}])";

std::string record(const std::string& stage, int code = 0) {
  job::JobRecord record;
  record.spec.id = "aaaa1111";
  record.state.stage = job::stage_of(stage).value();
  record.state.code = code;
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  all.push_back(to_json(record));
  return codec::print_json(all);
}

// A job on `hosts`, and a clock moved only by the test.
class FollowCoreTest : public ::testing::Test {
 protected:
  void begin(std::vector<std::string> hosts, FollowCore::Settings settings = {}) {
    settings.job = "aaaa1111";
    settings.hosts = std::move(hosts);
    settings.doing = [](std::size_t) { return "logging in"; };
    core_.emplace(std::move(settings), now());
    heed(core_->start(now()));
  }
  FollowCore::Now now() const { return {io::TimePoint() + time_, time_}; }

  void heed(const FollowActions& actions) {
    actions_.insert(actions_.end(), actions.begin(), actions.end());
  }
  // Moves the clock, with every tick requested by the core.
  void pass(Ms time) {
    const Ms end = time_ + time;
    while (core_->next_tick() <= io::TimePoint() + end) {
      time_ = std::max(time_, std::chrono::duration_cast<Ms>(core_->next_tick() - io::TimePoint()));
      heed(core_->tick(now()));
    }
    time_ = end;
  }
  void start(std::size_t node) { heed(core_->on_started(node, now())); }
  void output(std::size_t node) { heed(core_->on_output(node, now())); }
  void fail(std::size_t node) { heed(core_->on_failed(node, "h: cut", now())); }
  void end_follower(std::size_t node, int code = 0, int signal = 0) {
    heed(core_->on_follower_end(node, code, signal, now()));
  }
  void tell(std::size_t node, const std::string& text) {
    heed(core_->on_record(node, text, now()));
  }

  int count(Kind kind) const {
    return static_cast<int>(std::count_if(actions_.begin(), actions_.end(),
                                          [&](const auto& each) { return each.kind == kind; }));
  }
  bool said(std::string_view part) const {
    return std::any_of(actions_.begin(), actions_.end(), [&](const FollowAction& each) {
      return each.kind == Kind::say && each.text.find(part) != std::string::npos;
    });
  }
  bool finished() const { return count(Kind::finish) > 0; }

  std::optional<FollowCore> core_;
  FollowActions actions_;
  Ms time_{1'000'000};
};

TEST_F(FollowCoreTest, AJobThatEndsWellOnAllHosts) {
  begin({"a", "b"});
  EXPECT_EQ(count(Kind::open), 2);
  for (const std::size_t node : {0U, 1U}) {
    start(node);
    output(node);
    end_follower(node);
    tell(node, record("ended"));
    EXPECT_EQ(finished(), node == 1);
  }
  EXPECT_EQ(core_->outcome().status.state, JobState::succeeded);
  EXPECT_EQ(core_->outcome().status.code, 0);
  EXPECT_FALSE(core_->outcome().left);
  EXPECT_EQ(count(Kind::say), 0);
}

TEST_F(FollowCoreTest, AFollowersEndIsNotTheEndOfTheJob) {
  begin({"a"});
  start(0);
  output(0);
  end_follower(0, 0, SIGKILL);
  tell(0, kRunning);
  EXPECT_FALSE(finished());
  EXPECT_TRUE(said("a: its follower was ended by SIGKILL; the job needs no connection"));
  pass(Ms(50));
  EXPECT_EQ(count(Kind::open), 2);
  start(0);
  output(0);
  EXPECT_TRUE(said("a is back"));
  end_follower(0, 0);
  tell(0, record("ended", 5));
  EXPECT_TRUE(finished());
  EXPECT_EQ(core_->outcome().status.code, 5);
}

TEST_F(FollowCoreTest, ACleanEndWithoutARecordIsNoEndEither) {
  begin({"a"});
  start(0);
  end_follower(0);
  tell(0, "no json");
  EXPECT_FALSE(finished());
  EXPECT_TRUE(said("its follower ended with exit code 0"));
}

TEST_F(FollowCoreTest, AHostThatKillsEveryFollowerIsAskedLessAndLess) {
  begin({"a"});
  int answered = 0;
  for (int i = 0; i < 600; ++i) {
    if (count(Kind::open) > answered) {
      ++answered;
      start(0);
      end_follower(0, 0, SIGKILL);
      tell(0, kRunning);
    }
    pass(Ms(100));
  }
  // A minute: 50 ms, doubled up to 5 s.
  EXPECT_LT(count(Kind::open), 25);
  EXPECT_GT(count(Kind::open), 12);
}

TEST_F(FollowCoreTest, OutputThatAKilledFollowerKeptIsFetchedByAnother) {
  begin({"a"});
  start(0);
  output(0);
  end_follower(0, 0, SIGKILL);
  tell(0, record("ended"));
  EXPECT_FALSE(finished()) << "the end of the output may be missing";
  pass(Ms(50));
  start(0);
  output(0);
  end_follower(0);
  tell(0, record("ended"));
  EXPECT_TRUE(finished());
  EXPECT_TRUE(core_->outcome().missing.empty());
}

TEST_F(FollowCoreTest, OutputThatNoFollowerBringsIsNamedAsMissing) {
  begin({"a"});
  for (int i = 0; i < 100 && !finished(); ++i) {
    start(0);
    end_follower(0, 1);
    tell(0, record("ended"));
    if (!finished()) pass(Ms(5000));
  }
  EXPECT_TRUE(finished());
  EXPECT_EQ(core_->outcome().missing, std::vector<std::string>{"a"});
  EXPECT_EQ(core_->outcome().status.state, JobState::succeeded);
}

TEST_F(FollowCoreTest, OneHostsEndSpeaksForAHostThatStaysAway) {
  begin({"a", "b"});
  start(0);
  start(1);
  fail(1);
  end_follower(0);
  tell(0, record("ended", 3));
  EXPECT_FALSE(finished());
  pass(seconds(9));
  EXPECT_FALSE(finished());
  pass(seconds(2));
  EXPECT_TRUE(finished());
  EXPECT_TRUE(
      said("the host is taken for lost: the other hosts say that job aaaa1111 has ended, "
           "with exit code 3"));
  EXPECT_EQ(core_->outcome().status.code, 3);
}

TEST_F(FollowCoreTest, AHostThatComesBackInThatTimeIsHeard) {
  begin({"a", "b"});
  start(0);
  start(1);
  fail(1);
  end_follower(0);
  tell(0, record("ended"));
  pass(seconds(5));
  start(1);
  output(1);
  pass(seconds(20));
  EXPECT_FALSE(finished()) << "its part still runs";
  end_follower(1);
  tell(1, record("ended", 4));
  EXPECT_EQ(core_->outcome().status.code, 4);
}

TEST_F(FollowCoreTest, AloneAHostThatIsAwayIsWaitedForAndNamed) {
  begin({"a"});
  start(0);
  fail(0);
  pass(std::chrono::minutes(10));
  EXPECT_FALSE(finished());
  EXPECT_TRUE(said("waiting for a for"));
  EXPECT_TRUE(said("Ctrl-C stops waiting, and the job goes on"));
}

TEST_F(FollowCoreTest, AFirstLogInThatTakesLongIsNamed) {
  begin({"a"});
  pass(seconds(6));
  EXPECT_TRUE(said("waiting for a for 5 s: logging in")) << actions_.size();
}

TEST_F(FollowCoreTest, ALostPartIsWaitedForWhileOthersRun) {
  begin({"a", "b"});
  start(0);
  start(1);
  end_follower(1);
  tell(1, record("lost"));
  EXPECT_FALSE(finished());
  EXPECT_TRUE(said("lockstep resume aaaa1111 starts it again"));
  end_follower(0);
  tell(0, record("lost"));
  EXPECT_TRUE(finished());
  EXPECT_EQ(core_->outcome().status.state, JobState::lost);
  EXPECT_EQ(core_->outcome().status.code, std::nullopt);
}

TEST_F(FollowCoreTest, AJobThatTheHostDoesNotKnowIsLost) {
  begin({"a"});
  start(0);
  end_follower(0, 1);
  tell(0, "[]");
  EXPECT_TRUE(finished());
  EXPECT_EQ(core_->outcome().status.state, JobState::lost);
}

TEST_F(FollowCoreTest, WithoutWaitingAHostThatIsOffIsMissing) {
  begin({"a", "b"}, {.to_end = false});
  fail(0);
  start(1);
  end_follower(1);
  EXPECT_TRUE(finished());
  EXPECT_EQ(core_->outcome().missing, std::vector<std::string>{"a"});
}

TEST_F(FollowCoreTest, CtrlCCancelsThenHurriesThenLeaves) {
  begin({"a", "b"}, {.on_stop = FollowOptions::OnStop::cancel});
  start(0);
  fail(1);
  heed(core_->on_signal(SIGINT, now()));
  EXPECT_EQ(count(Kind::cancel), 2);
  EXPECT_TRUE(said("SIGINT came: the job is being stopped on 2 hosts"));
  pass(Ms(100));
  EXPECT_EQ(count(Kind::cancel), 3) << "again on the new link of b";
  heed(core_->on_signal(SIGINT, now()));
  EXPECT_FALSE(finished());
  heed(core_->on_signal(SIGINT, now()));
  EXPECT_TRUE(finished());
  EXPECT_TRUE(core_->outcome().left);
  EXPECT_EQ(core_->outcome().signal, SIGINT);
}

TEST_F(FollowCoreTest, AHangUpLeavesTheJob) {
  begin({"a"}, {.on_stop = FollowOptions::OnStop::cancel});
  heed(core_->on_signal(SIGHUP, now()));
  EXPECT_TRUE(finished());
  EXPECT_TRUE(core_->outcome().left);
  EXPECT_EQ(count(Kind::cancel), 0);
  begin({"a"});
  heed(core_->on_signal(SIGPIPE, now()));
  EXPECT_EQ(core_->outcome().signal, SIGPIPE);
}

TEST_F(FollowCoreTest, ABackgroundProcessCancelsOnlyOnSigint) {
  begin({"a"}, {.on_stop = FollowOptions::OnStop::interrupt_cancels});
  start(0);
  heed(core_->on_signal(SIGINT, now()));
  EXPECT_EQ(count(Kind::cancel), 1);
  EXPECT_FALSE(finished());
  // As at the shutdown of the machine: the job goes on without this process.
  heed(core_->on_signal(SIGTERM, now()));
  EXPECT_EQ(count(Kind::cancel), 1);
  EXPECT_TRUE(finished());
  EXPECT_TRUE(core_->outcome().left);
}

TEST_F(FollowCoreTest, RentedMachinesThatAreGoneEndTheWaiting) {
  begin({"a"}, {.may_be_gone = true});
  start(0);
  pass(seconds(60));
  fail(0);
  pass(seconds(4));
  EXPECT_EQ(count(Kind::ask_gone), 1);
  heed(core_->on_gone(false, now()));
  pass(seconds(4));
  EXPECT_EQ(count(Kind::ask_gone), 2);
  heed(core_->on_gone(true, now()));
  EXPECT_TRUE(finished());
  EXPECT_TRUE(core_->outcome().gone);
  EXPECT_GE(core_->outcome().silent, seconds(8));
  EXPECT_LE(core_->outcome().silent, seconds(60));
}

TEST_F(FollowCoreTest, ASleepOfThisMachineCountsAsSilence) {
  begin({"a"}, {.may_be_gone = true});
  start(0);
  pass(seconds(60));
  time_ += std::chrono::hours(8);
  heed(core_->tick(now()));
  fail(0);
  pass(seconds(4));
  heed(core_->on_gone(true, now()));
  EXPECT_GE(core_->outcome().silent, std::chrono::hours(8));
}

TEST_F(FollowCoreTest, NothingIsSaidOfAHostThatIsOver) {
  begin({"a", "b"});
  start(0);
  start(1);
  end_follower(0);
  tell(0, record("ended"));
  const auto before = actions_.size();
  fail(0);
  output(0);
  end_follower(0, 1);
  tell(0, kRunning);
  EXPECT_EQ(actions_.size(), before);
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
