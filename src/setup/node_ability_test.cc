#include "setup/node_ability.h"

#include <gtest/gtest.h>

namespace lockstep::setup {
namespace {

TEST(NodeAbility, TextThereAndBack) {
  for (const NodeAbility& each :
       {NodeAbility{"n1", 3, {80, 90}}, NodeAbility{"n1", 1, {}}, NodeAbility{"n-2", 0, {121}}}) {
    const auto back = ability_from(ability_text(each));
    ASSERT_TRUE(back) << ability_text(each);
    EXPECT_EQ(*back, each);
  }
  EXPECT_EQ(ability_text({"n1", 4, {86}}), "ability: n1 x86-64-v4 8.6");
  for (const char* line : {"", "ability:", "ability: n1 x86-64-v3", "n1 x86-64-v3 -",
                           "ability: n1 v9 -", "ability: n1 x86-64-v3 x", "ability:  v3 -"})
    EXPECT_FALSE(ability_from(line)) << line;
}

TEST(NodeAbility, TheLowestCpusAndAllGpusCount) {
  const auto common = common_ability({{"a", 4, {90}}, {"b", 2, {80, 90}}, {"c", 3, {}}}, 3);
  EXPECT_EQ(common.isa, "x86-64-v2");
  EXPECT_EQ(common.arch, "8.0;9.0");
  EXPECT_EQ(common_ability({{"a", 4, {}}, {"b", 4, {}}}, 2).isa, "x86-64-v4");
  EXPECT_EQ(common_ability({{"a", 4, {}}, {"b", 4, {}}}, 3).isa, "x86-64-v3") << "one is silent";
  EXPECT_EQ(common_ability({{"a", 2, {}}}, 3).isa, "x86-64-v2");
  EXPECT_EQ(common_ability({{"a", 0, {90}}, {"b", 4, {}}}, 2).isa, "");
  EXPECT_EQ(common_ability({}, 3).isa, "");
}

}  // namespace
}  // namespace lockstep::setup
