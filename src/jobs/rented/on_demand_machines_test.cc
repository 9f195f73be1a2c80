#include "jobs/rented/on_demand_machines.h"

#include "base/error_testing.h"
#include "rent/fake_world_testing.h"
#include "rent/rental_files.h"
#include "rent/rented_cluster.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::rented {
namespace {

class OnDemandMachinesTest : public rent::testing::FakeWorld {
 protected:
  OnDemandMachines machines(cloud::Rental rental) {
    const auto give_back = [this](cloud::Rental& given) -> Status {
      if (stops_) return fail(Errc::canceled, "stopped");
      return rent::give_back(*world, given, {});
    };
    return {*world, std::move(rental), {.give_back = give_back}};
  }
  bool stops_ = false;  // a signal ends the next termination
};

TEST_F(OnDemandMachinesTest, TheLockShowsWhatOthersHaveChanged) {
  OnDemandMachines all = machines(rented("a"));
  cloud::Rental changed = kept("a");
  changed.ends_ms = 77;
  ASSERT_TRUE(world->journal().keep(changed));
  ASSERT_TRUE(all.lock());
  EXPECT_EQ(all.rental().ends_ms, 77);
  all.unlock();
  ASSERT_TRUE(rent::give_back(*world, changed, {}));
  ASSERT_TRUE(all.lock());
  EXPECT_EQ(all.rental().closed_ms, web->now);
}

TEST_F(OnDemandMachinesTest, AnotherRentalOfTheNameIsNotOurs) {
  OnDemandMachines all = machines(rented("a"));
  cloud::Rental mine = kept("a");
  ASSERT_TRUE(rent::give_back(*world, mine, {}));
  cloud::Rental other = rented("b");
  other.cluster = "a";
  ASSERT_TRUE(world->journal().keep(other));
  ASSERT_TRUE(all.lock());
  EXPECT_EQ(all.rental().id, mine.id);
  EXPECT_NE(all.rental().closed_ms, 0);
  EXPECT_EQ(code_of(all.places()), Errc::unavailable);
  EXPECT_EQ(code_of(all.leases()), Errc::unavailable);
  EXPECT_EQ(code_of(all.hold(60)), Errc::unavailable);
}

TEST_F(OnDemandMachinesTest, TheLockIsWaitedForAMinute) {
  OnDemandMachines all = machines(rented("a"));
  rent::RentalLocks other(folder + "/lockstep");
  ASSERT_TRUE(other.take("a"));
  const std::int64_t before = web->now;
  EXPECT_EQ(code_of(all.lock()), Errc::unavailable);
  EXPECT_EQ(web->now - before, 60'000);
  other.release("a");
  EXPECT_TRUE(all.lock());
  all.unlock();
  EXPECT_TRUE(other.take("a"));
}

TEST_F(OnDemandMachinesTest, TheMachinesHavePlacesUntilTheyAreGone) {
  const cloud::Rental rental = rented("a");
  ASSERT_TRUE(rent::enter_cluster(rental));
  OnDemandMachines all = machines(rental);
  const auto places = all.places();
  ASSERT_TRUE(places) << places.error().message;
  EXPECT_EQ(places->front().target.host, "192.0.2.1");
  EXPECT_TRUE(cloud::is_whole(*all.look()));
  one->machines.clear();
  web->now += 120'000;
  EXPECT_FALSE(cloud::is_whole(*all.look()));
  EXPECT_FALSE(kept("a").settled()) << "a look does not write";
  ASSERT_TRUE(all.drop_lost());
  EXPECT_EQ(all.places().error().message, "the machines of 'a' are gone");
}

TEST_F(OnDemandMachinesTest, APreemptionTeachesThatThereIsNoRoomForSpotMachines) {
  cloud::Rental rental = rented("a");
  ASSERT_TRUE(machines(rental).drop_lost());
  EXPECT_TRUE(one->machines.empty());
  EXPECT_TRUE(world->journal().blocks(web->now)->empty()) << "not a spot machine";
  rental = rented("b");
  rental.attempts[0].offer.spot = true;
  ASSERT_TRUE(machines(rental).drop_lost());
  const auto blocks = world->journal().blocks(web->now);
  ASSERT_EQ(blocks->size(), 1U);
  EXPECT_EQ(blocks->front().region, "r1");
  EXPECT_TRUE(blocks->front().spot);
}

TEST_F(OnDemandMachinesTest, MachinesOnDemandReplaceSpotMachines) {
  one->set_spot(true);
  cloud::Offer offer{.provider = "one", .region = "r1", .zone = "r1-a", .type = "g1", .gpu = "L4"};
  offer.gpus = 1;
  offer.price.per_hour = 1'000'000;
  one->catalog.offers = {offer};
  cloud::Wish wish;
  wish.gpu = *cloud::parse_gpu_wish("L4:1");
  wish.spot = cloud::SpotWish::only;
  auto rental = rent::new_rental(*world, "a", wish, {.lifetime_s = 3600});
  ASSERT_TRUE(rental);
  OnDemandMachines all = machines(*rental);
  EXPECT_NE(all.rent(false, std::chrono::seconds(0)).error().message,
            "one g1 in r1-a: no room (Full)");
  EXPECT_EQ(all.rent(true, std::chrono::seconds(0)).error().message,
            "one g1 in r1-a: no room (Full)");
  EXPECT_NE(all.rental().user_data, rental->user_data) << "new machines get new keys";
}

TEST_F(OnDemandMachinesTest, ACanceledTerminationLeavesTheLockForTheNextTry) {
  OnDemandMachines all = machines(rented("a"));
  ASSERT_TRUE(all.lock());
  stops_ = true;
  EXPECT_EQ(code_of(all.give_back()), Errc::canceled);
  stops_ = false;
  ASSERT_TRUE(all.lock());
  ASSERT_TRUE(all.give_back());
  EXPECT_TRUE(one->machines.empty());
}

TEST_F(OnDemandMachinesTest, ASignalIsTakenOnce) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &set, &before);
  OnDemandMachines all = machines(rented("a"));
  EXPECT_EQ(all.take_signal(), 0);
  raise(SIGTERM);
  EXPECT_EQ(all.take_signal(), SIGTERM);
  EXPECT_EQ(all.take_signal(), 0);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace lockstep::jobs::rented
