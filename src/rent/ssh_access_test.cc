#include "rent/ssh_access.h"

#include "base/error_testing.h"
#include "rent/fake_world_testing.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::rent {
namespace {

using SshAccess = testing::FakeWorld;

constexpr const char* kNew = "203.0.113.9/32";

TEST_F(SshAccess, AnAddressIsDigitsAndDotsOrNotKnown) {
  EXPECT_EQ(*own_address(*web), "198.51.100.7/32");
  for (const char* answer : {"<html>log in first</html>", "2001:db8::1", ""}) {
    address = answer;
    EXPECT_EQ(code_of(own_address(*web)), Errc::unavailable) << answer;
  }
}

TEST_F(SshAccess, WhereNoProviderClosesThePortTheAddressIsNotAskedFor) {
  EXPECT_EQ(*address_for(*world, {}), "198.51.100.7/32");
  web->asked.clear();
  one->set_rule(cloud::PortRule::none);
  EXPECT_EQ(*address_for(*world, {}), cloud::kEverybody);
  EXPECT_TRUE(web->asked.empty());
}

TEST_F(SshAccess, AMoveOpensThePortForAllRentalsThatFollowThisMachine) {
  cloud::Rental moved = rented("a");
  (void)rented("b");
  cloud::Rental fixed = rented("c");
  fixed.terms.own_address = false;
  fixed.terms.allow_from = "192.0.2.0/24";
  ASSERT_TRUE(world->journal().keep(fixed));
  EXPECT_TRUE(lets_in(moved, "198.51.100.7/32"));
  EXPECT_FALSE(lets_in(moved, kNew));
  std::vector<std::string> told;
  const auto step = [&](const std::string& line) { told.push_back(line); };
  ASSERT_TRUE(follow_address(*world, moved, kNew, step));
  ASSERT_EQ(one->allowed.size(), 1U);
  EXPECT_NE(one->allowed[0].find(kNew), std::string::npos) << one->allowed[0];
  EXPECT_NE(one->allowed[0].find("192.0.2.0/24"), std::string::npos) << one->allowed[0];
  EXPECT_EQ(one->allowed[0].find("198.51.100.7"), std::string::npos) << one->allowed[0];
  EXPECT_EQ(kept("a").terms.allow_from, kNew);
  EXPECT_EQ(kept("b").terms.allow_from, kNew);
  EXPECT_EQ(kept("c").terms.allow_from, "192.0.2.0/24");
  EXPECT_EQ(told.size(), 1U);
  // Another process may have changed the shared rule: it is set again, and nothing is said.
  ASSERT_TRUE(follow_address(*world, moved, kNew, step));
  EXPECT_EQ(one->allowed.size(), 2U);
  EXPECT_EQ(told.size(), 1U);
}

TEST_F(SshAccess, AFixedAddressIsNotLeft) {
  cloud::Rental rental = rented("a");
  rental.terms.own_address = false;
  const Status refused = follow_address(*world, rental, kNew, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(code_of(refused), Errc::denied);
  EXPECT_EQ(refused.error().hint, "lockstep up a --allow-from 203.0.113.9/32 opens it");
  EXPECT_TRUE(one->allowed.empty());
}

TEST_F(SshAccess, ARuleThatCannotBeSetIsNotNoted) {
  cloud::Rental rental = rented("a");
  one->allows = false;
  const Status refused = open_to(*world, rental, kNew);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("one r1: the ssh port of 'a' is not open to"), 0U)
      << refused.error().message;
  EXPECT_EQ(kept("a").terms.allow_from, "198.51.100.7/32");
}

}  // namespace
}  // namespace lockstep::rent
