#include "rent/command_rental.h"

#include "base/error_testing.h"
#include "hosts/registry.h"
#include "rent/fake_world_testing.h"

namespace lockstep::rent {
namespace {

class CommandRentalTest : public testing::FakeWorld {
 protected:
  // Returns a rental with a machine that an earlier command has met.
  cloud::Rental used() {
    cloud::Rental rental = rented("a");
    rental.attempts.back().machines.back().host_key = "ssh-ed25519 AAAA";
    EXPECT_TRUE(world->journal().keep(rental));
    return rental;
  }
  // The renting fails: hosts have the name.
  Status rent(cloud::Rental& rental, bool keeps_used = true) {
    const auto registry = hosts::Registry::open(folder + "/lockstep");
    EXPECT_TRUE(registry->add({.name = "a", .nodes = {}}));
    return rent_or_undo(*world, rental, {}, {},
                        {.event = {}, .step = {}, .line = [this](auto text) { told_ = text; }},
                        keeps_used);
  }
  std::string told_;
};

TEST_F(CommandRentalTest, AKnownRentalIsUsedUnlessItEnds) {
  EXPECT_FALSE(known_rental(*world, "a").value());
  const cloud::Rental rental = rented("a");
  EXPECT_EQ(known_rental(*world, "a").value()->id, rental.id);
  ASSERT_TRUE(world->journal().ask_to_end(rental.id));
  const auto ending = known_rental(*world, "a");
  EXPECT_EQ(code_of(ending), Errc::unavailable);
  EXPECT_EQ(ending.error().hint, "lockstep down a finishes that");
}

TEST_F(CommandRentalTest, ANameOfAJobOfAnotherHostIsRefused) {
  cloud::RentedJob job{.rental = "r", .cluster = "a", .words = {}, .folder = "/"};
  ASSERT_TRUE(world->journal().keep_job(job));
  EXPECT_TRUE(check_not_owned_elsewhere(world->journal(), "a")) << "the job is of this machine";
  job.host = "me@desk";
  ASSERT_TRUE(world->journal().keep_job(job));
  const Status refused = check_not_owned_elsewhere(world->journal(), "a");
  EXPECT_EQ(code_of(refused), Errc::unavailable);
  EXPECT_EQ(refused.error().message, "'a' is the name of a job at me@desk");
  EXPECT_TRUE(check_not_owned_elsewhere(world->journal(), "b"));
}

TEST_F(CommandRentalTest, MachinesThatWereMetAreInUse) {
  cloud::Rental rental = rented("a");
  EXPECT_FALSE(is_in_use(rental)) << "no command has met the machine";
  rental = used();
  EXPECT_TRUE(is_in_use(rental));
  rental.wish.nodes = 2;
  EXPECT_FALSE(is_in_use(rental)) << "a machine is missing";
}

TEST_F(CommandRentalTest, AJobOnSpotMachinesIsGuardedHere) {
  cloud::Wish wish;
  EXPECT_EQ(guard_of_new({}, wish, true, false), "");
  wish.spot = cloud::SpotWish::prefer;
  EXPECT_EQ(guard_of_new({}, wish, true, false), "here");
  EXPECT_EQ(guard_of_new({}, wish, false, false), "") << "no job";
  EXPECT_EQ(guard_of_new({}, wish, true, true), "") << "the user has said --will-watch";
  EXPECT_EQ(guard_of_new({.guard = "me@desk"}, wish, true, false), "me@desk");
}

TEST_F(CommandRentalTest, MachinesInUseOutliveAFailure) {
  cloud::Rental rental = used();
  const Status done = rent(rental);
  EXPECT_EQ(code_of(done), Errc::already_exists);
  EXPECT_TRUE(done.error().message.ends_with("; 'a' stays as it is")) << done.error().message;
  EXPECT_EQ(one->ends, 0);
}

TEST_F(CommandRentalTest, MachinesInUseEndIfTheirUserSaysSo) {
  cloud::Rental rental = used();
  ASSERT_TRUE(world->journal().ask_to_end(rental.id));
  EXPECT_EQ(code_of(rent(rental)), Errc::already_exists);
  EXPECT_TRUE(one->machines.empty());
}

TEST_F(CommandRentalTest, OtherMachinesAreTerminatedAfterAFailure) {
  cloud::Rental rental = rented("a");
  const Status done = rent(rental);
  EXPECT_EQ(code_of(done), Errc::already_exists);
  EXPECT_EQ(done.error().hint, "") << "nothing is left to end";
  EXPECT_TRUE(one->machines.empty());
  EXPECT_NE(rental.closed_ms, 0);
}

TEST_F(CommandRentalTest, AJobDoesNotBeginWithMachinesThatFail) {
  cloud::Rental rental = used();
  EXPECT_FALSE(rent(rental, false));
  EXPECT_TRUE(one->machines.empty());
}

TEST_F(CommandRentalTest, TheErrorSaysWhatIsLeft) {
  cloud::Rental rental = rented("a");
  rental.ends_ms = web->now + 3'600'000;
  one->deaf = true;
  const Status done = rent(rental);
  EXPECT_EQ(code_of(done), Errc::already_exists);
  EXPECT_TRUE(done.error().hint.starts_with("lockstep down a ends the rest; "))
      << done.error().hint;
  EXPECT_NE(told_, "") << "why a machine is left";
}

}  // namespace
}  // namespace lockstep::rent
