#include "jobs/rented/owned_end.h"

#include "base/error_testing.h"
#include "jobs/rented/owned_testing.h"
#include "proc/signals.h"
#include "rent/job_claim.h"

#include <signal.h>
#include <unistd.h>

namespace lockstep::jobs::rented {
namespace {

class OwnedEndTest : public OwnedTest {
 protected:
  Result<std::optional<int>> settle(Telling telling = Telling::full) {
    auto kept = journal();
    return settle_owned(kept, world(), course_, telling);
  }
};

TEST_F(OwnedEndTest, AJobThatGoesOnIsLeftAlone) {
  EXPECT_EQ(settle().value(), std::nullopt);
  EXPECT_TRUE(is_kept());
  EXPECT_EQ(asked_, (std::vector<Words>{{"state", "r"}}));
  EXPECT_TRUE(brought_.empty() && said_.empty());
}

TEST_F(OwnedEndTest, TheOutputsComeBeforeTheEndIsToldOnce) {
  ends(0);
  EXPECT_EQ(settle().value(), 0);
  EXPECT_EQ(brought_, (Words{"out", "logs"}));
  EXPECT_EQ(said_, (Words{"'lab' has ended at me@h: exit code 0, it cost 1 USD"}));
  EXPECT_EQ(asked_.back(), (Words{"told", "r"}));
  EXPECT_FALSE(is_kept());
  EXPECT_EQ(settle().value(), std::nullopt) << "another command has told it";
  EXPECT_EQ(said_.size(), 1U);
}

TEST_F(OwnedEndTest, MissingOutputsMakeASuccessAFailure) {
  ends(0);
  unreadable_ = "out";
  EXPECT_EQ(settle(Telling::brief).value(), 1);
  EXPECT_EQ(brought_, (Words{"out", "logs"})) << "one path costs no other";
  EXPECT_TRUE(said_.empty());
}

TEST_F(OwnedEndTest, ASilentHostLeavesTheRecord) {
  reached_ = false;
  EXPECT_EQ(code_of(settle()), Errc::unavailable);
  EXPECT_TRUE(is_kept());
}

TEST_F(OwnedEndTest, AJobThatTheHostDoesNotKnowIsForgotten) {
  there_ = {};
  EXPECT_EQ(settle().value(), 1);
  EXPECT_EQ(brought_.size(), 2U) << "`lockstep down` may have ended it";
  EXPECT_EQ(said_, (Words{"me@h has no job on 'lab' any more: it never began there, or was ended "
                          "there"}));
  EXPECT_FALSE(is_kept());
}

TEST_F(OwnedEndTest, AnotherCommandThatHasTheClaimSettles) {
  ends(0);
  const auto claim = rent::claim_job("r");
  EXPECT_EQ(settle().value(), std::nullopt);
  EXPECT_TRUE(asked_.empty() && is_kept());
}

TEST_F(OwnedEndTest, AShownJobIsSettledAtItsEnd) {
  ends(3);
  const auto shown = show_owned(world(), course_, {});
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(shown->code, 3);
  EXPECT_EQ(viewed_.at(0).how, "all");
  EXPECT_EQ(viewed_[0].settings.on_stop, OwnedViewCore::OnStop::cancel);
  EXPECT_TRUE(said_.empty()) << "the log has told the end";
  EXPECT_FALSE(is_kept());
}

TEST_F(OwnedEndTest, TheEndOfAViewIsNotTheEndOfTheJob) {
  const auto shown = show_owned(world(), course_, {});
  EXPECT_EQ(shown->code, std::nullopt);
  EXPECT_EQ(shown->view_code, 0);
  EXPECT_EQ(said_, (Words{"'lab' goes on at me@h; lockstep logs -f lab shows it, lockstep down lab "
                          "ends it"}));
  EXPECT_TRUE(is_kept());
  end_ = {.signal = SIGHUP};
  EXPECT_EQ(show_owned(world(), course_, {})->signal, SIGHUP);
  end_ = {.lost = "no route"};
  EXPECT_EQ(code_of(show_owned(world(), course_, {})), Errc::unavailable);
}

TEST_F(OwnedEndTest, AnEndIsKnownEvenIfItsOutputsDoNotComeHere) {
  auto cut_off = world();
  cut_off.bring = [](const auto&...) -> Result<bool> { return fail(Errc::unavailable, "cut"); };
  ends(0);
  EXPECT_EQ(show_owned(cut_off, course_, {})->code, 1) << "the outputs are not here";
  EXPECT_EQ(said_, (Words{"cut",
                          "'lab' has ended at me@h; the next command about machines on "
                          "demand brings its outputs"}));
  ends(3);
  EXPECT_EQ(show_owned(cut_off, course_, {})->code, 3);
  EXPECT_TRUE(is_kept());
}

TEST_F(OwnedEndTest, CtrlCDuringTheTransferIsTheUsersOwn) {
  auto stopped = world();
  stopped.bring = [](const auto&...) -> Result<bool> {
    return Failure(Error{Errc::canceled, "stopped", {}, SIGINT});
  };
  ends(0);
  EXPECT_EQ(show_owned(stopped, course_, {})->signal, SIGINT);
  EXPECT_TRUE(is_kept());
}

TEST_F(OwnedEndTest, AJobThatTheHostForgotDoesNotGoOn) {
  auto cut_off = world();
  cut_off.bring = [](const auto&...) -> Result<bool> { return fail(Errc::unavailable, "cut"); };
  there_ = {};
  EXPECT_EQ(show_owned(cut_off, course_, {})->code, std::nullopt);
  EXPECT_EQ(said_, (Words{"cut"}));
}

// A journal with this job, which cannot be written.
class ReadOnlyRecords : public cloud::Records {
 public:
  explicit ReadOnlyRecords(cloud::RentedJob job) : job_(std::move(job)) {}
  Status put(const Record&) override { return full(); }
  Status add(const Record&) override { return full(); }
  Status change(const Record&) override { return full(); }
  Status drop(const std::string&, const std::string&) override { return full(); }
  Result<std::vector<Record>> open_ones(const std::string& kind) override {
    return std::vector<Record>{
        {.kind = kind, .id = job_.rental, .json = cloud::rented_job_json(job_)}};
  }
  Result<std::vector<Record>> since(const std::string&, std::int64_t) override { return full(); }
  Result<std::optional<Record>> newest(const std::string&, const std::string&) override {
    return full();
  }

 private:
  static Failure full() { return fail(Errc::unavailable, "no space"); }
  cloud::RentedJob job_;
};

TEST_F(OwnedEndTest, ARecordThatCannotBeRemovedDoesNotHideTheEnd) {
  cloud::Journal full(std::make_unique<ReadOnlyRecords>(course_));
  ends(0);
  EXPECT_EQ(show_owned(full, world(), course_, {}, true)->code, 0);
  EXPECT_EQ(brought_, (Words{"out", "logs"}));
  EXPECT_EQ(said_, (Words{"no space"}));
  EXPECT_EQ(asked_.back().front(), "state") << "the next command settles the job with the host";
}

TEST_F(OwnedEndTest, TheIdOfAStartedJobIsKept) {
  ASSERT_TRUE(show_owned(world(), course_, {.how = "start"}));
  EXPECT_EQ(journal().jobs()->at(0).job, "aaaa1111");
}

TEST_F(OwnedEndTest, ASignalThatCancelsIsTheUsersOwn) {
  ends(128 + SIGINT);
  end_.canceled_by = SIGTERM;
  EXPECT_EQ(show_owned(world(), course_, {})->code, 128 + SIGTERM);
}

TEST_F(OwnedEndTest, AViewWithoutTheClaimAwaitsTheCommandThatSettles) {
  proc::block(proc::handled_signals());
  auto claim = rent::claim_job("r");
  meanwhile_ = [&] {
    ends(0);
    EXPECT_TRUE(journal().drop_job("r"));
    claim->reset();
  };
  EXPECT_EQ(show_owned(world(), course_, {})->code, 0);
  EXPECT_TRUE(brought_.empty());
  // A signal ends the wait.
  ASSERT_TRUE(journal().keep_job(course_));
  claim = rent::claim_job("r");
  meanwhile_ = [] { kill(getpid(), SIGINT); };
  const auto stopped = show_owned(world(), course_, {});
  EXPECT_EQ(code_of(stopped), Errc::canceled);
  EXPECT_EQ(stopped.error().sys, SIGINT);
}

TEST_F(OwnedEndTest, AnEndByTheUserEndsTheRentalThereAndBringsWhatIsSaved) {
  auto kept = journal();
  ASSERT_TRUE(end_owned(kept, world(), course_, false));
  EXPECT_EQ(run_, (std::vector<Words>{{"down", "lab", "--force"}}));
  EXPECT_EQ(outputs_.at(0), OwnerOutput::words);
  EXPECT_EQ(brought_, (Words{"out", "logs"}));
  EXPECT_FALSE(is_kept());
  // An end before is told, and its outputs come once.
  ASSERT_TRUE(kept.keep_job(course_));
  ends(0);
  ASSERT_TRUE(end_owned(kept, world(), course_, false));
  EXPECT_EQ(said_.size(), 1U);
  EXPECT_EQ(brought_.size(), 4U);
}

TEST_F(OwnedEndTest, ARefusalThereForgetsNothing) {
  auto kept = journal();
  code_ = 1;
  EXPECT_EQ(code_of(end_owned(kept, world(), course_, true)), Errc::unavailable);
  EXPECT_TRUE(is_kept() && brought_.empty());
}

TEST_F(OwnedEndTest, OnlyForceForgetsAJobWhoseHostIsGone) {
  auto kept = journal();
  reached_ = false;
  const Status refused = end_owned(kept, world(), course_, false);
  EXPECT_EQ(refused.error().hint, "lockstep down lab --force forgets the job here");
  EXPECT_TRUE(is_kept());
  const Status forgotten = end_owned(kept, world(), course_, true);
  EXPECT_EQ(forgotten.error().message, "me@h: no route; 'lab' is forgotten here");
  EXPECT_FALSE(is_kept());
}

}  // namespace
}  // namespace lockstep::jobs::rented
