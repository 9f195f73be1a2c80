#include "rent/provider_set.h"

#include "rent/fake_world_testing.h"

#include <gtest/gtest.h>

namespace lockstep::rent {
namespace {

using ProviderSetTest = testing::FakeWorld;

TEST_F(ProviderSetTest, AProviderIsFoundByItsNameAndKeysCountOnlyWhereAskedFor) {
  const ProviderSet& set = world->providers();
  EXPECT_EQ(set.find("two"), two);
  EXPECT_EQ(set.find_keyed("two"), nullptr);
  EXPECT_EQ(set.find_keyed("one"), one);
  EXPECT_EQ(set.find("three"), nullptr);
  EXPECT_EQ(set.keyed(), std::vector<cloud::Provider*>{one});
}

TEST_F(ProviderSetTest, NamedProvidersMustExistAndHaveCredentials) {
  const ProviderSet& set = world->providers();
  EXPECT_EQ(*set.with_keys({"one"}), std::vector<cloud::Provider*>{one});
  EXPECT_EQ(set.with_keys({"one", "two"}).error().message, "no key is found");
  const Error unknown = set.with_keys({"three"}).error();
  EXPECT_EQ(unknown.code, Errc::invalid_input);
  EXPECT_EQ(unknown.hint, "there are one, two");
}

TEST_F(ProviderSetTest, WithoutAnyCredentialsEveryPlaceForThemIsNamed) {
  EXPECT_EQ(*world->providers().with_keys({}), std::vector<cloud::Provider*>{one});
  one->has_keys = false;
  const Error none = world->providers().with_keys({}).error();
  EXPECT_EQ(none.code, Errc::not_found);
  EXPECT_EQ(none.hint, "one: FAKE_KEY; two: FAKE_KEY");
}

}  // namespace
}  // namespace lockstep::rent
