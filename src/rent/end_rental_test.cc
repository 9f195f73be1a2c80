#include "rent/end_rental.h"

#include "base/error_testing.h"
#include "rent/fake_world_testing.h"

namespace lockstep::rent {
namespace {

class EndRentalTest : public testing::FakeWorld {
 protected:
  Result<bool> end(cloud::Rental& rental) {
    return end_rental(
        *world, rental, [this] { waits_(); },
        [this](cloud::Rental& mine) { return give_back(*world, mine, {}); });
  }
  void keep_job(const cloud::Rental& rental) {
    EXPECT_TRUE(world->journal().keep_job(
        {.rental = rental.id, .cluster = rental.cluster, .words = {}, .folder = "/"}));
  }
  std::function<void()> waits_ = [] { ADD_FAILURE() << "nobody has the lock"; };
};

TEST_F(EndRentalTest, MachinesAndJobAreGone) {
  cloud::Rental rental = rented("a");
  keep_job(rental);
  EXPECT_TRUE(end(rental).value());
  EXPECT_TRUE(one->machines.empty() && world->journal().jobs()->empty());
  EXPECT_NE(rental.closed_ms, 0);
}

TEST_F(EndRentalTest, AnErrorOfTheProviderKeepsTheRentalAndItsJob) {
  cloud::Rental rental = rented("a");
  keep_job(rental);
  one->deaf = true;
  EXPECT_FALSE(end(rental));
  EXPECT_TRUE(world->journal().of_cluster("a"));
  EXPECT_EQ(world->journal().jobs()->size(), 1U);
}

TEST_F(EndRentalTest, TheProcessThatHasTheRentalEndsFirst) {
  cloud::Rental rental = rented("a");
  keep_job(rental);
  RentalLocks other(folder + "/lockstep");
  ASSERT_TRUE(other.take("a"));
  int waited = 0;
  waits_ = [&] {
    ++waited;
    EXPECT_TRUE(world->journal().end_is_asked(rental.id).value());
    other.release("a");
  };
  EXPECT_TRUE(end(rental).value());
  EXPECT_EQ(waited, 1);
  EXPECT_TRUE(one->machines.empty() && world->journal().jobs()->empty());
}

TEST_F(EndRentalTest, WhatTheOtherProcessHasTerminatedIsToldAsItsRecordSays) {
  cloud::Rental rental = rented("a");
  RentalLocks other(folder + "/lockstep");
  ASSERT_TRUE(other.take("a"));
  waits_ = [&] {
    cloud::Rental ended = kept("a");
    EXPECT_TRUE(give_back(*world, ended, {}));
    other.release("a");
  };
  EXPECT_FALSE(end(rental).value());
  EXPECT_NE(rental.closed_ms, 0);
}

TEST_F(EndRentalTest, AProcessThatHangsIsNotAwaitedForever) {
  cloud::Rental rental = rented("a");
  RentalLocks other(folder + "/lockstep");
  ASSERT_TRUE(other.take("a"));
  waits_ = [] {};
  const auto refused = end(rental);
  EXPECT_EQ(code_of(refused), Errc::unavailable);
  EXPECT_NE(refused.error().hint.find("the end is noted"), std::string::npos);
  EXPECT_EQ(one->machines.size(), 1U);
}

class CleanAccounts : public testing::FakeWorld {};

TEST_F(CleanAccounts, EachProviderIsCleanedOnceAfterItsLastRental) {
  EXPECT_TRUE(clean_accounts(*world).empty()) << "nothing was ever rented";
  cloud::Rental rental = rented("a");
  rental.attempts[0].asked_ms = web->now;
  EXPECT_TRUE(clean_accounts(*world).empty()) << "a rental is open";
  ASSERT_TRUE(give_back(*world, rental, {}));
  one->cleans = false;
  const auto failed = clean_accounts(*world);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].provider, "one");
  EXPECT_FALSE(failed[0].cleaned);
  one->cleans = true;
  EXPECT_TRUE(clean_accounts(*world).at(0).cleaned);
  web->now += 1000;
  EXPECT_TRUE(clean_accounts(*world).empty()) << "it is clean already";
  two->has_keys = true;
  EXPECT_TRUE(clean_accounts(*world).empty()) << "never used";
}

}  // namespace
}  // namespace lockstep::rent
