#include "jobs/on_slurm/slurm_bad_nodes.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::on_slurm {
namespace {

using Names = std::vector<std::string>;

std::string excluded(const Names& words, const Names& names, Names& added) {
  const auto read = slurm::read_settings(words);
  const auto settings = with_excluded(read->settings, names, added);
  const slurm::Setting* setting = slurm::find_setting(settings, "exclude");
  return setting == nullptr ? "" : setting->value;
}

TEST(SlurmBadNodes, AreAddedToTheUsersOwn) {
  Names added;
  EXPECT_EQ(excluded({"-N2"}, {"n1", "n2"}, added), "n1,n2");
  EXPECT_EQ(added, (Names{"n1", "n2"}));
  EXPECT_EQ(excluded({"-x", "n[1-3]"}, {"n2", "n5"}, added), "n[1-3],n5");
  EXPECT_EQ(added, Names{"n5"});
  EXPECT_EQ(excluded({"-x", "n1"}, {"n1"}, added), "n1");
  EXPECT_TRUE(added.empty());
}

TEST(SlurmBadNodes, ThoseThatTheUserNamesAreUsed) {
  Names added;
  EXPECT_EQ(excluded({"-w", "n[1-2]"}, {"n2", "n3"}, added), "n3");
  EXPECT_EQ(excluded({"-w", "n2"}, {"n2"}, added), "");
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
