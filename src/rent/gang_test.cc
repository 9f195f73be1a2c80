#include "rent/gang.h"

#include "base/error_testing.h"
#include "hosts/registry.h"
#include "rent/fake_world_testing.h"
#include "rent/rental_files.h"
#include "rent/rented_cluster.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::rent {
namespace {

class GangTest : public testing::FakeWorld {
 protected:
  bool stands(const std::string& cluster) {
    return hosts::Registry::open(folder + "/lockstep")->find(cluster).has_value();
  }
};

TEST_F(GangTest, ARentalIsMadeWithKeysForThisMachineAlone) {
  const auto rental = new_rental(*world, "a", {}, {});
  ASSERT_TRUE(rental);
  EXPECT_EQ(rental->id.size(), 20U);
  EXPECT_EQ(rental->terms.allow_from, "198.51.100.7/32");
  EXPECT_TRUE(rental->terms.own_address);
  EXPECT_FALSE(rental->user_data.empty());
  EXPECT_TRUE(std::filesystem::exists(user_key_file("a")));
  cloud::Rental again = *rental;
  ASSERT_TRUE(new_keys(*world, again));
  EXPECT_EQ(again.public_key, rental->public_key);
  EXPECT_NE(again.user_data, rental->user_data) << "the old host key was in earlier user data";
}

TEST_F(GangTest, GivingBackLeavesNeitherMachineNorKeysNorCluster) {
  cloud::Rental rental = rented("a");
  ASSERT_TRUE(new_keys(*world, rental));
  ASSERT_TRUE(enter_cluster(rental));
  ASSERT_TRUE(stands("a"));
  ASSERT_TRUE(give_back(*world, rental, {}));
  EXPECT_TRUE(one->machines.empty());
  EXPECT_NE(rental.closed_ms, 0);
  EXPECT_FALSE(world->journal().of_cluster("a"));
  EXPECT_FALSE(stands("a"));
  EXPECT_FALSE(std::filesystem::exists(rental_folder("a")));
}

TEST_F(GangTest, DroppedMachinesLeaveTheRentalAndItsKeys) {
  cloud::Rental rental = rented("a");
  ASSERT_TRUE(new_keys(*world, rental));
  ASSERT_TRUE(enter_cluster(rental));
  ASSERT_TRUE(drop_machines(*world, rental, "taken", {}));
  EXPECT_TRUE(one->machines.empty());
  EXPECT_TRUE(kept("a").wanted);
  EXPECT_TRUE(kept("a").settled());
  EXPECT_FALSE(stands("a"));
  EXPECT_TRUE(std::filesystem::exists(user_key_file("a")));
}

TEST_F(GangTest, OnlyALookThatMayWriteChangesTheJournal) {
  cloud::Rental rental = rented("a");
  one->machines.clear();
  web->now += 120'000;
  cloud::Rental copy = rental;
  ASSERT_TRUE(look_only(*world, copy));
  EXPECT_TRUE(copy.settled());
  EXPECT_FALSE(kept("a").settled());
  ASSERT_TRUE(look(*world, rental));
  EXPECT_TRUE(kept("a").settled());
}

TEST_F(GangTest, WhatCouldNotBeRentedLeavesNoCluster) {
  cloud::Offer offer{.provider = "one", .region = "r1", .zone = "r1-a", .type = "g1", .gpu = "L4"};
  offer.gpus = 1;
  offer.price.per_hour = 1'000'000;
  one->catalog.offers = {offer};
  cloud::Wish wish;
  wish.gpu = *cloud::parse_gpu_wish("L4:1");
  auto rental = new_rental(*world, "a", wish, {.lifetime_s = 3600});
  ASSERT_TRUE(rental);
  cloud::RentRules rules;
  rules.wait = std::chrono::seconds(0);
  std::vector<std::string> told;
  const auto tell = [&](const cloud::RentEvent& event) { told.push_back(event.text); };
  const Status done = rent_gang(*world, *rental, {}, rules, tell, {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "one g1 in r1-a: no room (Full)");
  EXPECT_EQ(told, std::vector<std::string>{done.error().message});
  EXPECT_EQ(one->queries.size(), 1U) << "no provider was asked before";
  EXPECT_FALSE(stands("a"));
}

TEST_F(GangTest, AFreshMarketIsNotAskedForAgain) {
  auto rental = new_rental(*world, "a", {}, {.lifetime_s = 3600});
  ASSERT_TRUE(rental);
  cloud::RentRules rules;
  rules.wait = std::chrono::seconds(0);
  EXPECT_FALSE(rent_gang(*world, *rental, {.catalog = {}, .asked_ms = web->now}, rules, {}, {}));
  EXPECT_TRUE(one->queries.empty());
}

TEST_F(GangTest, ANameOfHostsIsNotTakenByMachines) {
  const auto registry = hosts::Registry::open(folder + "/lockstep");
  ASSERT_TRUE(registry->add({.name = "a", .nodes = {}}));
  EXPECT_EQ(code_of(check_name("a")), Errc::already_exists);
  EXPECT_TRUE(check_name("b"));
  EXPECT_EQ(code_of(take_name(rented("a"))), Errc::already_exists);
  ASSERT_TRUE(leave_cluster(world->journal(), "a"));
  EXPECT_TRUE(stands("a")) << "a cluster of hosts is never removed here";
}

TEST_F(GangTest, AStandingClusterKeepsItsNameWithoutNodes) {
  const cloud::Rental rental = rented("a");
  ASSERT_TRUE(world->journal().keep_standing(rental));
  ASSERT_TRUE(enter_cluster(rental));
  EXPECT_EQ(hosts::Registry::open(folder + "/lockstep")->find("a")->nodes.size(), 1U);
  ASSERT_TRUE(leave_cluster(world->journal(), "a"));
  EXPECT_TRUE(hosts::Registry::open(folder + "/lockstep")->find("a")->nodes.empty());
}

}  // namespace
}  // namespace lockstep::rent
