#include "cloud/kept_answer.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>

namespace lockstep::cloud {
namespace {

TEST(KeptAnswer, IsThereAsLongAsItHolds) {
  std::string folder = ::testing::TempDir() + "kept-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string inside = folder + "/new";
  EXPECT_FALSE(kept_answer(inside, "prices", 1000, 500));
  keep_answer(inside, "prices", "one\ntwo\n", 1000);
  const auto kept = kept_answer(inside, "prices", 1500, 500);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->text, "one\ntwo\n");
  EXPECT_EQ(kept->as_of_ms, 1000);
  EXPECT_FALSE(kept_answer(inside, "prices", 1501, 500));
  EXPECT_FALSE(kept_answer(inside, "prices", 999, 500));  // the clock was set back
  drop_answer(inside, "prices");
  EXPECT_FALSE(kept_answer(inside, "prices", 1000, 500));
  EXPECT_FALSE(kept_answer("", "prices", 1000, 500));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::cloud
