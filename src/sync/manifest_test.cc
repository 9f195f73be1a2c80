#include "sync/manifest.h"

#include <gtest/gtest.h>

namespace lockstep::sync {
namespace {

Manifest some() {
  Manifest manifest = {
      {.path = "a/b.py", .size = 3, .mtime_ns = 1'700'000'000'123'456'789},
      {.path = "a/run.sh", .executable = true, .size = 0, .mtime_ns = -5},
      {.path = "a/link", .kind = Kind::link, .target = "../../etc"},
      {.path = std::string("new\nline\xFF"), .size = 1ULL << 40, .mtime_ns = 0},
  };
  sort(manifest);
  return manifest;
}

std::string bytes(const Manifest& manifest) {
  std::string out;
  encode(manifest, out);
  return out;
}

TEST(Manifest, ComesBackAsItWas) {
  const std::string encoded = bytes(some()) + "rest";
  std::string_view view = encoded;
  EXPECT_EQ(decode(view).value(), some());
  EXPECT_EQ(view, "rest");
}

TEST(Manifest, IsRefusedWhereverItIsCutOrSpoilt) {
  const std::string whole = bytes(some());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::string_view view = std::string_view(whole).substr(0, size);
    EXPECT_FALSE(decode(view)) << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (int byte : {0, 0x2F, 0x7F, 0xFF}) {
      std::string spoilt = whole;
      spoilt[at] = static_cast<char>(byte);
      std::string_view view = spoilt;
      (void)decode(view);
    }
}

TEST(Manifest, HoldsNoPathTwiceAndNoneThatLeadsOut) {
  for (const char* path : {"", "/etc/passwd", "..", "a/../b", "a//b", "./a", "a/", ".git/config",
                           "a/.git/hooks/x", "a/.GIT/config", ".Git", "git~1/config"}) {
    const std::string encoded = bytes({{.path = path}});
    std::string_view view = encoded;
    EXPECT_FALSE(decode(view)) << path;
  }
  for (const Manifest& manifest :
       {Manifest{{.path = "a"}, {.path = "a"}}, Manifest{{.path = "b"}, {.path = "a"}}}) {
    const std::string encoded = bytes(manifest);
    std::string_view view = encoded;
    EXPECT_FALSE(decode(view));
  }
  EXPECT_TRUE(check_path("a/..b/...c"));
  EXPECT_TRUE(check_path(".gitignore"));
}

TEST(Manifest, ThatRepeatsALongPathIsBounded) {
  const std::string folder(kMostPath - 8, 'x');
  Manifest manifest;
  for (int i = 0; i < 200'000; ++i)
    manifest.push_back({.path = folder + std::to_string(1'000'000 + i)});
  const std::string encoded = bytes(manifest);
  EXPECT_LT(encoded.size(), 3U << 20);
  std::string_view view = encoded;
  EXPECT_FALSE(decode(view));
}

TEST(Manifest, ALinkMayComeIfNoOtherLinkCanLeadItOut) {
  const auto may = [](const char* path, const char* target) {
    return link_may_come({.path = path, .kind = Kind::link, .target = target});
  };
  EXPECT_TRUE(may("a/latest", "step_100"));
  EXPECT_TRUE(may("a/b/model", "../../blobs/./1"));
  EXPECT_TRUE(may("a/b/c", "../.."));
  for (const char* target : {"/etc", "../../x", "..//../x", "b/../x", "b/c/../../../secret",
                             "../.git/config", "../.GIT", ".git"})
    EXPECT_FALSE(may("a/b", target)) << target;
}

TEST(Manifest, FindsItsEntries) {
  const Manifest manifest = some();
  ASSERT_NE(find(manifest, "a/run.sh"), nullptr);
  EXPECT_TRUE(find(manifest, "a/run.sh")->executable);
  EXPECT_EQ(find(manifest, "a"), nullptr);
  EXPECT_EQ(bytes_of(manifest), (1ULL << 40) + 3);
  const Entry huge{.path = "x", .size = 1ULL << 63};
  EXPECT_EQ(bytes_of({huge, huge, huge}), UINT64_MAX);
}

TEST(Manifest, TimesMayBeCoarseOnAHost) {
  const Entry meant{.path = "a", .size = 1, .mtime_ns = 1'700'000'000'123'456'789};
  const auto there = [&](std::int64_t ns) {
    Entry entry = meant;
    entry.mtime_ns = ns;
    return same(entry, meant);
  };
  EXPECT_TRUE(there(1'700'000'000'123'456'789));
  EXPECT_TRUE(there(1'700'000'000'123'456'700));
  EXPECT_TRUE(there(1'700'000'000'123'456'000));
  EXPECT_TRUE(there(1'700'000'000'000'000'000));
  EXPECT_FALSE(there(1'700'000'000'123'456'790));
  EXPECT_FALSE(there(1'700'000'001'000'000'000));
  Entry other = meant;
  other.executable = true;
  EXPECT_FALSE(same(other, meant));
  other = meant;
  other.size = 2;
  EXPECT_FALSE(same(other, meant));
}

}  // namespace
}  // namespace lockstep::sync
