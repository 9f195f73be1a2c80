#include "rent/machines_for_use.h"

#include "base/clock_ms.h"
#include "base/error_testing.h"
#include "io/own_folders.h"
#include "rent/fake_world_testing.h"
#include "rent/gang.h"
#include "rent/rental_files.h"
#include "rent/rented_cluster.h"

#include <filesystem>

namespace lockstep::rent {
namespace {

using Kind = MachinesForUse::Kind;

class MachinesForUseTest : public testing::FakeWorld {
 protected:
  cloud::Rental entered(const std::string& cluster) {
    cloud::Rental rental = rented(cluster);
    EXPECT_TRUE(enter_cluster(rental));
    EXPECT_TRUE(io::make_folders(rental_folder(cluster)));
    return rental;
  }
  // A gang of two nodes.
  cloud::Rental gang(const std::string& cluster) {
    cloud::Rental rental = rented(cluster);
    cloud::Held second = rental.attempts[0].machines[0];
    second.node = 1;
    second.machine.id += "-1";
    one->machines.push_back(second.machine);
    rental.attempts[0].machines.push_back(second);
    rental.wish.nodes = 2;
    EXPECT_TRUE(world->journal().keep(rental));
    EXPECT_TRUE(enter_cluster(rental));
    return rental;
  }
  void keep_job(const cloud::Rental& rental) {
    EXPECT_TRUE(world->journal().keep_job({.rental = rental.id,
                                           .cluster = rental.cluster,
                                           .words = {},
                                           .folder = "/",
                                           .stage = cloud::RentedJob::Stage::working}));
  }
  hosts::Registry registry() const { return *hosts::Registry::open(folder + "/lockstep"); }
  Result<MachinesForUse> find(const std::string& cluster) {
    return find_machines_for_use(*world, registry(), cluster, [this](cloud::Rental& rental) {
      ++ended_;
      return give_back(*world, rental, {});
    });
  }
  // The machines that the provider lists are gone, and it is late enough to believe so.
  void lose(std::size_t left) {
    one->machines.erase(one->machines.begin() + static_cast<std::ptrdiff_t>(left),
                        one->machines.end());
    web->now += 120'000;
  }
  int ended_ = 0;
};

TEST_F(MachinesForUseTest, MachinesThatRunAreUsedAndTheUseIsNoted) {
  entered("a");
  EXPECT_EQ(find("a")->kind, Kind::all);
  EXPECT_TRUE(std::filesystem::exists(used_file("a")));
  EXPECT_EQ(one->ends, 0);
  EXPECT_EQ(find("other")->kind, Kind::none);
  EXPECT_EQ(ended_, 0);
}

TEST_F(MachinesForUseTest, WhatIsLeftOfLostMachinesIsTerminated) {
  entered("a");
  lose(0);
  EXPECT_EQ(find("a")->kind, Kind::none);
  EXPECT_EQ(ended_, 1);
  EXPECT_FALSE(world->journal().of_cluster("a"));
  EXPECT_TRUE(world->locks().take("a")) << "the lock is free again";
}

TEST_F(MachinesForUseTest, MachinesThatNobodyWantsAreNotUsed) {
  const cloud::Rental rental = entered("a");
  ASSERT_TRUE(world->journal().ask_to_end(rental.id));
  EXPECT_EQ(find("a")->kind, Kind::none);
  EXPECT_EQ(ended_, 1);
  EXPECT_TRUE(one->machines.empty());
}

TEST_F(MachinesForUseTest, TheRestOfAGangIsNeverTerminated) {
  gang("a");
  lose(1);
  const auto found = find("a");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->kind, Kind::some);
  EXPECT_EQ(found->left, "0");
  EXPECT_EQ(ended_ + one->ends, 0);
}

TEST_F(MachinesForUseTest, TheCourseOfAJobReplacesItsMachines) {
  const cloud::Rental rental = entered("a");
  keep_job(rental);
  EXPECT_EQ(find("a")->kind, Kind::all);
  lose(0);
  EXPECT_EQ(code_of(find("a")), Errc::unavailable);
  EXPECT_EQ(ended_, 0);
  EXPECT_FALSE(kept("a").settled()) << "the journal is the course's";
}

TEST_F(MachinesForUseTest, AnErrorOfTheProviderTerminatesNothing) {
  entered("a");
  lose(0);
  one->has_keys = false;
  EXPECT_FALSE(find("a"));
  EXPECT_EQ(ended_, 0);
}

TEST_F(MachinesForUseTest, ARecentUseNeedsNoQuestion) {
  cloud::Rental rental = entered("a");
  const hosts::Cluster known = registry().find("a").value();
  const std::int64_t now = unix_ms();
  rental.ends_ms = now + 3'600'000;
  rental.terms.autostop_s = 600;
  const auto there = [&](std::int64_t at_ms) { return use_surely_there(rental, known, at_ms); };
  EXPECT_FALSE(there(now)) << "never used from here";
  note_use("a");
  EXPECT_TRUE(there(now + 590'000));
  EXPECT_FALSE(there(now + 610'000)) << "idle for too long";
  EXPECT_FALSE(there(now - 60'000)) << "the clock was set back";
  EXPECT_FALSE(there(now + 7'200'000)) << "its lease is over";
  EXPECT_FALSE(use_surely_there(rental, {}, now)) << "no nodes";
  rental.wanted = false;
  EXPECT_FALSE(there(now));
  EXPECT_EQ(one->lists, 0);
}

}  // namespace
}  // namespace lockstep::rent
