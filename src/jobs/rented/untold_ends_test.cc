#include "jobs/rented/untold_ends.h"

#include "base/error_testing.h"
#include "rent/fake_world_testing.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <signal.h>

namespace lockstep::jobs::rented {
namespace {

using Stage = cloud::RentedJob::Stage;
using Texts = std::vector<std::string>;

class UntoldEndsTest : public rent::testing::FakeWorld {
 protected:
  void keep(const std::string& cluster, Stage stage,
            const std::function<void(cloud::RentedJob&)>& change = {}) {
    cloud::RentedJob job{.rental = "intent-" + cluster,
                         .cluster = cluster,
                         .words = {},
                         .folder = "/",
                         .stage = stage};
    if (change) change(job);
    EXPECT_TRUE(world->journal().keep_job(job));
  }
  Status tell() {
    OwnedWorld owners;
    owners.ask = [this](const cloud::RentedJob&, const Texts& argv) -> Result<std::string> {
      if (argv.front() != "state") return std::string();
      if (there_) return owned_state_text(*there_);
      return Failure(silence_);
    };
    owners.bring = [](const cloud::RentedJob&, const std::string&,
                      const OwnedWorld::Say&) -> Result<bool> { return true; };
    owners.now_ms = [this] { return now_ms_; };
    owners.say = [this](const std::string& text) { said_.push_back(text); };
    return tell_untold_ends(
        *world, world->journal().open_rentals().value(), owners,
        {.ended =
             [this](const cloud::RentedJob& job, const cloud::Rental* closed) {
               said_.push_back(job.cluster + (closed == nullptr ? " ended" : " was closed") +
                               (job.note.empty() ? "" : ": " + job.note));
             },
         .followed =
             [this](const cloud::RentedJob& job, const Status& started) {
               said_.push_back(job.cluster + (started ? " is followed" : " is not followed"));
             },
         .not_known = [this](const cloud::RentedJob& job,
                             const Error&) { said_.push_back(job.cluster + " is not known"); }},
        [this](const std::string& rental) -> Status {
          started_.push_back(rental);
          if (!starts_) return fail(Errc::unavailable, "no process");
          return {};
        });
  }
  std::size_t jobs() { return world->journal().jobs()->size(); }

  std::optional<OwnedState> there_;
  Error silence_{Errc::unavailable, "no route", {}, 0};
  std::int64_t now_ms_ = 0;
  bool starts_ = true;
  Texts said_;
  Texts started_;
};

TEST_F(UntoldEndsTest, AnEndIsToldOnce) {
  keep("a", Stage::ended);
  ASSERT_TRUE(tell());
  ASSERT_TRUE(tell());
  EXPECT_EQ(said_, (Texts{"a ended"}));
  EXPECT_EQ(jobs(), 0U);
}

TEST_F(UntoldEndsTest, AJobWithAProcessIsLeftToIt) {
  keep("a", Stage::ended);
  const auto claim = rent::claim_job("intent-a");
  ASSERT_TRUE(tell());
  EXPECT_TRUE(said_.empty());
  EXPECT_EQ(jobs(), 1U);
}

TEST_F(UntoldEndsTest, AClosedRentalEndsItsJob) {
  cloud::Rental rental = rented("a");
  keep("a", Stage::working);
  keep("never-rented", Stage::renting);
  rental.closed_ms = 7;
  rental.attempts.clear();
  ASSERT_TRUE(world->journal().keep(rental));
  ASSERT_TRUE(tell());
  EXPECT_EQ(said_, (Texts{"a was closed"}));
  EXPECT_EQ(jobs(), 0U);
}

TEST_F(UntoldEndsTest, ANotedSuccessIsToldWithAClosedRental) {
  cloud::Rental rental = rented("a");
  keep("a", Stage::working, [](cloud::RentedJob& job) { job.succeeded = true; });
  rental.closed_ms = 7;
  rental.attempts.clear();
  ASSERT_TRUE(world->journal().keep(rental));
  ASSERT_TRUE(tell());
  EXPECT_EQ(said_, (Texts{"a was closed: the job had succeeded"}));
}

TEST_F(UntoldEndsTest, OnlyAJobWithoutAGuardGetsAProcessHere) {
  rented("a");
  keep("a", Stage::working);
  cloud::Rental guarded = rented("b");
  guarded.terms.guard = "here";
  ASSERT_TRUE(world->journal().keep(guarded));
  keep("b", Stage::working);
  ASSERT_TRUE(tell());
  EXPECT_EQ(started_, (Texts{"intent-a"}));
  EXPECT_EQ(said_, (Texts{"a is followed"}));
  starts_ = false;
  ASSERT_TRUE(tell());
  EXPECT_EQ(said_.back(), "a is not followed");
  EXPECT_EQ(jobs(), 2U);
}

TEST_F(UntoldEndsTest, TheOwnerOfARentalIsAskedForTheEnd) {
  const auto elsewhere = [](cloud::RentedJob& job) { job.host = "me@h"; };
  keep("a", Stage::working, elsewhere);
  there_ = {.known = true, .ended = true, .state = "succeeded", .note = "it cost 1 USD"};
  ASSERT_TRUE(tell());
  EXPECT_EQ(said_, (Texts{"'a' has ended at me@h: exit code 0, it cost 1 USD"}));
  EXPECT_EQ(jobs(), 0U);
  keep("a", Stage::working, elsewhere);
  keep("b", Stage::ended);
  there_.reset();
  ASSERT_TRUE(tell());
  EXPECT_EQ((Texts{said_.end() - 2, said_.end()}), (Texts{"a is not known", "b ended"}))
      << "one silent host holds no other job";
  keep("b", Stage::ended);
  silence_ = {.code = Errc::canceled, .message = "stopped", .hint = {}, .sys = SIGINT};
  const Status stopped = tell();
  EXPECT_EQ(code_of(stopped), Errc::canceled);
  EXPECT_EQ(said_.back(), "b ended") << "the user wants no more";
  EXPECT_EQ(jobs(), 2U);
}

TEST_F(UntoldEndsTest, TheEndOfAClientsJobIsKeptForTheClient) {
  keep("a", Stage::ended, [](cloud::RentedJob& job) { job.client = "laptop"; });
  ASSERT_TRUE(tell());
  EXPECT_EQ(jobs(), 1U);
  now_ms_ = std::int64_t{31} * 86'400'000;
  ASSERT_TRUE(tell());
  EXPECT_EQ(jobs(), 0U);
  EXPECT_TRUE(said_.empty());
}

}  // namespace
}  // namespace lockstep::jobs::rented
