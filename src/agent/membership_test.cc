#include "agent/membership.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::agent {
namespace {

using namespace std::chrono_literals;
using rendezvous::Backend;
using Strings = std::vector<std::string>;

// Stores every request until the test answers.
class FakeBackend : public Backend {
 public:
  void open(Done<void> done) override { open_ = std::move(done); }
  void join(Done<std::optional<Round>> done) override { join_ = std::move(done); }
  void tell_failure(const std::string& line, bool final) override {
    told_.push_back(line + (final ? " (final)" : ""));
  }
  void tell_stop() override { told_.emplace_back("stop"); }
  void finish(Done<void> done) override { finish_ = std::move(done); }
  void exchange_reports(const rendezvous::NodeReport& own, std::chrono::milliseconds,
                        std::function<void(std::vector<rendezvous::NodeReport>)>) override {
    told_.push_back(own.host + " " + own.text);
  }
  void leave(rendezvous::Departure, Done<void> done) override { leave_ = std::move(done); }
  std::string waiting_for() const override { return {}; }
  void interrupt(const rendezvous::Interruption& what) { on_interruption_(what); }

  Done<void> open_;
  Done<std::optional<Round>> join_;
  Done<void> finish_;
  Done<void> leave_;
  Strings told_;
};

class MembershipTest : public testing::Test, private Membership::Listener {
 protected:
  MembershipTest() {
    config_.nproc = 2;
    config_.exit_barrier_timeout = 300s;
    membership_ =
        std::make_unique<Membership>(loop_, node_, static_cast<Membership::Listener&>(*this),
                                     [this](const rendezvous::OfferStore& offer_store) {
                                       offer_store_ = offer_store;
                                       auto backend = std::make_unique<FakeBackend>();
                                       backend_ = backend.get();
                                       return backend;
                                     });
  }

  static Round round_of(int restarts) {
    Round round;
    round.restarts = restarts;
    round.group_world_size = 2;
    round.world_size = 4;
    round.role_world_size = 4;
    return round;
  }

  void reach(int restarts) {
    membership_->join();
    if (backend_->open_) std::exchange(backend_->open_, nullptr)({});
    backend_->join_(std::optional(round_of(restarts)));
  }

  Strings heard() { return std::exchange(heard_, {}); }

  launch::LaunchConfig config_;
  Node node_{.config = config_, .environment = {}, .host_name = "n1", .name = "n1"};
  io::Loop loop_;
  std::unique_ptr<Membership> membership_;
  FakeBackend* backend_ = nullptr;
  rendezvous::OfferStore offer_store_;

 private:
  void on_joined(const Round& round, bool counted) override {
    heard_.push_back("joined " + std::to_string(round.restarts) + (counted ? " counted" : ""));
  }
  void on_join_failed(Error error) override { heard_.push_back("failed: " + error.message); }
  void on_spare_over() override { heard_.emplace_back("spare"); }
  void on_interruption(rendezvous::Interruption::Kind kind, const std::string& why) override {
    heard_.push_back((kind == rendezvous::Interruption::Kind::end ? "end: " : "rejoin: ") + why);
  }
  void on_barrier_over() override { heard_.emplace_back("barrier over"); }

  Strings heard_;
};

TEST_F(MembershipTest, OpensOnceAndJoinsRoundAfterRound) {
  reach(0);
  EXPECT_TRUE(membership_->is_open());
  EXPECT_EQ(heard(), (Strings{"joined 0"}));
  reach(1);
  EXPECT_FALSE(backend_->open_) << "it was opened twice";
  EXPECT_EQ(heard(), (Strings{"joined 1 counted"}));
  reach(1);  // a node came or went
  EXPECT_EQ(heard(), (Strings{"joined 1"}));
  EXPECT_EQ(membership_->round().world_size, 4);
}

TEST_F(MembershipTest, AFormerRankZeroHasNoStoreOfTheRound) {
  ASSERT_TRUE(offer_store_("127.0.0.1"));
  reach(0);
  EXPECT_NE(membership_->store(), nullptr);
  membership_->join();
  Round round = round_of(1);
  round.group_rank = 1;
  round.base_rank = 2;
  backend_->join_(std::optional(round));
  EXPECT_EQ(membership_->round().group_rank, 1);
  EXPECT_EQ(membership_->store(), nullptr) << "its keys are of an earlier round";
}

TEST_F(MembershipTest, AJoinThatFailsIsTold) {
  membership_->join();
  backend_->open_(fail(Errc::unavailable, "nobody is there"));
  EXPECT_FALSE(membership_->is_open());
  EXPECT_EQ(heard(), (Strings{"failed: nobody is there"}));
}

TEST_F(MembershipTest, ARoundThatHoldsNoRanksForTheWorkersIsAFailure) {
  membership_->join();
  backend_->open_({});
  Round round = round_of(0);
  round.base_rank = 3;  // of 4 ranks, and this node has two workers
  backend_->join_(std::optional(round));
  const Strings told = heard();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].starts_with("failed: ")) << told[0];
}

TEST_F(MembershipTest, ASpareHearsOfTheEnd) {
  membership_->join();
  backend_->open_({});
  backend_->join_(std::nullopt);
  EXPECT_EQ(heard(), (Strings{"spare"}));
}

TEST_F(MembershipTest, NothingIsToldOfWhatNobodyWaitsForAnyMore) {
  membership_->join();
  membership_->stop_waiting();  // a signal, say
  backend_->open_(fail(Errc::timeout, "nobody came"));
  EXPECT_TRUE(heard().empty()) << "it would replace the signal's exit code";

  membership_->join();
  membership_->stop_waiting();
  backend_->open_({});
  EXPECT_TRUE(membership_->is_open()) << "there is something to leave";
  EXPECT_FALSE(backend_->join_);

  membership_->join();
  membership_->stop_waiting();
  backend_->join_(std::optional(round_of(0)));
  EXPECT_TRUE(heard().empty());
}

TEST_F(MembershipTest, TheBarrierEndsWithAllWorkersOfAllNodes) {
  reach(0);
  heard();
  membership_->enter_barrier();
  EXPECT_TRUE(heard().empty());
  backend_->finish_({});
  EXPECT_EQ(heard(), (Strings{"barrier over"}));
}

TEST_F(MembershipTest, AnErrorEndsTheBarrierToo) {
  reach(0);
  heard();
  membership_->enter_barrier();
  backend_->finish_(fail(Errc::unavailable, "n2 does not answer"));
  EXPECT_EQ(heard(), (Strings{"barrier over"}));
}

TEST_F(MembershipTest, TheBarrierOfARoundThatIsOverSaysNothing) {
  reach(0);
  membership_->enter_barrier();
  const auto finish = backend_->finish_;
  membership_->stop_waiting();
  membership_->join();
  heard();
  finish({});
  EXPECT_TRUE(heard().empty());
  backend_->join_(std::optional(round_of(0)));
  EXPECT_EQ(heard(), (Strings{"joined 0"})) << "the wait for the round goes on";
}

TEST_F(MembershipTest, ABarrierWithoutTimeIsOverInTheNextTurn) {
  config_.exit_barrier_timeout = 0s;
  reach(0);
  heard();
  membership_->enter_barrier();
  EXPECT_TRUE(heard().empty()) << "no call comes inside one of its own functions";
  while (heard().empty())
    loop_.run_once();
  EXPECT_FALSE(backend_->finish_);
}

TEST_F(MembershipTest, TellsAndHears) {
  reach(0);
  heard();
  membership_->tell_failure("rank 0 failed", true);
  membership_->tell_stop();
  membership_->exchange_reports("[]", 1s, [](const std::vector<rendezvous::NodeReport>&) {});
  EXPECT_EQ(backend_->told_, (Strings{"rank 0 failed (final)", "stop", "n1 []"}));
  backend_->interrupt({rendezvous::Interruption::Kind::end, "n2\x1b[31m is gone"});
  ASSERT_EQ(heard(), (Strings{"end: n2\\x1b[31m is gone"})) << "steers no terminal";
}

TEST_F(MembershipTest, LeavingIsOverWhateverComesOfIt) {
  reach(0);
  bool left = false;
  membership_->leave(rendezvous::Departure::failed, [&left] { left = true; });
  EXPECT_FALSE(left);
  backend_->leave_(fail(Errc::timeout, "too late"));
  EXPECT_TRUE(left);
  membership_->close();
}

}  // namespace
}  // namespace lockstep::agent
