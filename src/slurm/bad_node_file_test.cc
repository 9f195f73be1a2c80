#include "slurm/bad_node_file.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace lockstep::slurm {
namespace {

constexpr std::int64_t kNow = 1'795'374'000;

class BadNodeFile : public ::testing::Test {
 protected:
  BadNodeFile() {
    std::string name = ::testing::TempDir() + "/bad-nodes-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~BadNodeFile() override { std::filesystem::remove_all(folder_); }

  std::size_t bad(const std::string& cluster) const {
    return known_bad_nodes(folder_, cluster, kNow).value().size();
  }

  std::string folder_;
};

TEST_F(BadNodeFile, WhatIsNotedIsKnownAndCanBeForgotten) {
  EXPECT_EQ(bad("hpc"), 0U);
  ASSERT_TRUE(note_bad_node(folder_, {"hpc", "n2", kNow, 1, "power cut"}));
  ASSERT_TRUE(note_bad_node(folder_, {"hpc", "n3", kNow, 1, "prolog"}));
  ASSERT_TRUE(note_bad_node(folder_, {"two", "n2", kNow, 1, "prolog"}));
  EXPECT_EQ(bad("hpc"), 2U);
  EXPECT_EQ(bad("two"), 1U);
  ASSERT_TRUE(forget_bad_node(folder_, "hpc", "n2", kNow));
  EXPECT_EQ(bad("hpc"), 1U);
  EXPECT_EQ(bad("two"), 1U);
  const Status again = forget_bad_node(folder_, "hpc", "n2", kNow);
  ASSERT_FALSE(again);
  EXPECT_EQ(code_of(again), Errc::not_found);
}

TEST_F(BadNodeFile, OldFailuresLeaveTheFile) {
  ASSERT_TRUE(note_bad_node(folder_, {"hpc", "n2", kNow - 30 * slurm::kHalfLife, 1, "old"}));
  const auto before = std::filesystem::file_size(folder_ + "/bad-nodes");
  ASSERT_TRUE(note_bad_node(folder_, {"hpc", "n3", kNow, 1, "new"}));
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/bad-nodes"), before);
  EXPECT_EQ(bad("hpc"), 1U);
}

}  // namespace
}  // namespace lockstep::slurm
