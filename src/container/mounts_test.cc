#include "container/mounts.h"

#include <gtest/gtest.h>

namespace lockstep::container {
namespace {

TEST(Mounts, ReadsAList) {
  const auto mounts = read_mounts("/data:/d:ro,out:/results/,/x:/y:rw", "/w");
  ASSERT_TRUE(mounts);
  EXPECT_EQ(*mounts, (std::vector<Mount>{{.from = "/data", .to = "/d", .read_only = true},
                                         {.from = "/w/out", .to = "/results"},
                                         {.from = "/x", .to = "/y"}}));
}

TEST(Mounts, RefusesMalformedItems) {
  for (const char* text : {"/data", "/data:", ":/d", "/a:b", "/a:/b:rx", "/a:/b:ro:x", "/a:/",
                           "/a:/b,,/c:/d", ",", "/a:/x,/b:/x/"})
    EXPECT_FALSE(read_mounts(text, "/w")) << text;
}

TEST(Mounts, LeavesOutFoldersBelowOthers) {
  const auto all = all_mounts({}, {"/tmp/job", "/home/u/p", "/tmp", "/home/u/p", "/", ""});
  ASSERT_TRUE(all);
  EXPECT_EQ(*all, (std::vector<Mount>{{.from = "/home/u/p", .to = "/home/u/p"},
                                      {.from = "/tmp", .to = "/tmp"}}));
}

TEST(Mounts, KeepsTheUsersMounts) {
  // Below /tmp, at another place, or read-only: each says more than the folders do.
  const std::vector<Mount> wanted = {{.from = "/tmp/a", .to = "/tmp/a", .read_only = true},
                                     {.from = "/x", .to = "/home/u/p"}};
  const auto all = all_mounts(wanted, {"/home/u/p", "/tmp", "/tmp/a/b"});
  ASSERT_TRUE(all);
  EXPECT_EQ(*all, (std::vector<Mount>{{.from = "/x", .to = "/home/u/p"},
                                      {.from = "/tmp", .to = "/tmp"},
                                      {.from = "/tmp/a", .to = "/tmp/a", .read_only = true}}));
}

TEST(Mounts, RefusesPathsThatNoRuntimeTakes) {
  EXPECT_FALSE(all_mounts({}, {"/work/a:b"}));
  EXPECT_FALSE(all_mounts({}, {"/work/a,b"}));
}

}  // namespace
}  // namespace lockstep::container
