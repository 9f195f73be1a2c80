#include "sync/heavy.h"

#include <gtest/gtest.h>

namespace lockstep::sync {
namespace {

TEST(Heavy, NamesFilesAndFoldersThatAreLarge) {
  Manifest manifest = {{.path = "data/deep/big.bin", .size = 600}, {.path = "small", .size = 1}};
  for (int i = 0; i < 10; ++i)
    manifest.push_back({.path = "images/" + std::to_string(i), .size = 40});
  sort(manifest);
  const auto found = heaviest(manifest, 2);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].path, "data/deep/big.bin");
  EXPECT_EQ(found[0].bytes, 600U);
  EXPECT_EQ(found[1].path, "images/");
  EXPECT_EQ(found[1].bytes, 400U);
  EXPECT_TRUE(heaviest({}, 3).empty());
}

}  // namespace
}  // namespace lockstep::sync
