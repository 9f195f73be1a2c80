#include "sync/piece_files.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

namespace lockstep::sync {
namespace {

namespace fs = std::filesystem;

class PieceFilesTest : public ::testing::Test {
 protected:
  PieceFilesTest() {
    const fs::path top =
        fs::path(::testing::TempDir()) /
        (std::string("pieces_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(top);
    fs::create_directories(top / "tree");
    top_ = fs::canonical(top);
    root_ = top_ / "tree";
    tree_.emplace(Confined::open(root_.string()).value());
  }
  std::string text(const std::string& path) const {
    std::ifstream file(root_ / path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  Status write(const Entry& entry, std::uint64_t offset, const std::string& bytes) {
    return write_piece(*tree_, {entry, offset, bytes});
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::count_if(fs::recursive_directory_iterator(root_), fs::recursive_directory_iterator(),
                      [](const fs::directory_entry& each) { return !each.is_directory(); }));
  }

  fs::path top_;
  fs::path root_;
  std::optional<Confined> tree_;
};

TEST_F(PieceFilesTest, ALinkIsFollowedAsTheKernelDoes) {
  fs::create_directories(root_ / "a/b");
  fs::create_directory_symlink("../..", root_ / "a/b/top");
  fs::create_directory_symlink("/mnt", root_ / "data");
  fs::create_directory_symlink("b/../b/top/data", root_ / "a/far");
  fs::create_directory_symlink("loop", root_ / "loop");
  fs::create_directory_symlink("a/../..", root_ / "up");
  const auto out = [&](const char* path, const char* target) {
    return tree_->leads_out(path, target).value();
  };
  EXPECT_FALSE(out("x", "a/b"));
  EXPECT_FALSE(out("a/x", "../none/./at//all"));
  EXPECT_FALSE(out("x", "a/b/top/a"));
  EXPECT_FALSE(out("a/b/x", "../.."));
  EXPECT_TRUE(out("a/x", "../.."));
  EXPECT_TRUE(out("x", "a/b/top/../secret"));
  EXPECT_TRUE(out("a/x", "/etc"));
  for (const char* target : {"data", "data/x", "a/far", "loop", "up", "a/b/top/.git/config"})
    EXPECT_TRUE(out("x", target)) << target;
}

TEST_F(PieceFilesTest, AFileAppearsOnceItIsWhole) {
  const Entry entry{
      .path = "a/b", .executable = true, .size = 6, .mtime_ns = 1'500'000'000'000'000'007};
  ASSERT_TRUE(write(entry, 0, "abc"));
  EXPECT_FALSE(fs::exists(root_ / "a/b"));
  ASSERT_TRUE(write(entry, 3, "def"));
  EXPECT_EQ(text("a/b"), "abcdef");
  EXPECT_EQ(files(), 1U);
  const auto info = tree_->look("a/b").value().value();
  EXPECT_EQ(tree_->entry("a/b", info).value().value(), entry);
  EXPECT_EQ(read_piece(*tree_, "a/b", 2, 3).value(), "cde");
  EXPECT_EQ(read_piece(*tree_, "a/b", 4, 10).value(), "ef");
  EXPECT_EQ(read_piece(*tree_, "a/none", 0, 10).value(), "");
}

TEST_F(PieceFilesTest, WhatWasThereKeepsItsBits) {
  std::ofstream(root_ / "a") << "old";
  chmod((root_ / "a").c_str(), 0640);
  ASSERT_TRUE(write({.path = "a", .executable = true, .size = 1}, 0, "x"));
  struct stat info {};
  stat((root_ / "a").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0750U);
  ASSERT_TRUE(write({.path = "a", .size = 1}, 0, "x"));
  stat((root_ / "a").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

TEST_F(PieceFilesTest, LinksAreMadeAndReplaced) {
  ASSERT_TRUE(write({.path = "l", .kind = Kind::link, .target = "/nowhere"}, 0, ""));
  EXPECT_EQ(fs::read_symlink(root_ / "l"), "/nowhere");
  ASSERT_TRUE(write({.path = "l", .size = 1}, 0, "x"));  // the file replaces the link itself
  EXPECT_FALSE(fs::is_symlink(root_ / "l"));
  EXPECT_EQ(text("l"), "x");
}

TEST_F(PieceFilesTest, NoLinkLeadsOut) {
  fs::create_directories(top_ / "outside");
  std::ofstream(top_ / "outside/secret") << "secret";
  fs::create_directory_symlink(top_ / "outside", root_ / "dir");
  fs::create_symlink(top_ / "outside/secret", root_ / "file");
  EXPECT_FALSE(write({.path = "dir/x", .size = 1}, 0, "x"));
  EXPECT_EQ(read_piece(*tree_, "dir/secret", 0, 6).value(), "");
  EXPECT_EQ(read_piece(*tree_, "file", 0, 6).value(), "");
  fs::create_symlink(top_ / "outside/planted", root_ / draft_of("new"));
  EXPECT_TRUE(write({.path = "new", .size = 1}, 0, "x"));
  for (const char* path : {"../x", "/tmp/x", "a/../../x", ".git/hooks/post-checkout"})
    EXPECT_FALSE(write({.path = path, .size = 1}, 0, "x")) << path;
  EXPECT_EQ(std::distance(fs::directory_iterator(top_ / "outside"), fs::directory_iterator()), 1);
}

TEST_F(PieceFilesTest, PiecesOutOfOrderAreRefused) {
  const Entry entry{.path = "a", .size = 4};
  EXPECT_FALSE(write(entry, 2, "cd"));
  ASSERT_TRUE(write(entry, 0, "a"));
  EXPECT_FALSE(write(entry, 2, "cd"));
  EXPECT_EQ(files(), 0U);  // no draft stays
}

}  // namespace
}  // namespace lockstep::sync
