#include "cloud/table/provider_table.h"

#include "cloud/table/machine_endings.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::table {
namespace {

Ground bare() {
  return {.env = [](std::string_view) { return std::optional<std::string>(); },
          .home = "/nowhere",
          .cache = "/nowhere",
          .state = "/nowhere"};
}

TEST(ProviderTable, ARowHasTheNameOfItsProvider) {
  const auto made = make_providers(bare());
  ASSERT_EQ(made.size(), providers().size());
  for (std::size_t i = 0; i < made.size(); ++i)
    EXPECT_EQ(made[i]->traits().name, providers()[i].name);
}

// A lease holds only the word: a machine could not end itself without the row.
TEST(ProviderTable, AMachineKnowsTheEndingOfEachProvider) {
  for (const auto& provider : make_providers(bare())) {
    const MachineEnding* ending = find_ending(provider->traits().machine_ending.word);
    ASSERT_NE(ending, nullptr) << provider->traits().name;
    EXPECT_EQ(*ending, provider->traits().machine_ending);
  }
  EXPECT_EQ(find_ending("explosion"), nullptr);
}

}  // namespace
}  // namespace lockstep::cloud::table
