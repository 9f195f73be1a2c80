#include "sync/scan.h"

#include "sync/git_files.h"
#include "sync/own_rules.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace lockstep::sync {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<std::string>;

class ScanTest : public ::testing::Test {
 protected:
  ScanTest() {
    const fs::path top =
        fs::path(::testing::TempDir()) /
        (std::string("scan_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(top);
    fs::create_directories(top / "tree");
    top_ = fs::canonical(top);
    const char* home = getenv("HOME");
    before_ = home == nullptr ? "" : home;
    setenv("HOME", top_.c_str(), 1);
    unsetenv("XDG_CONFIG_HOME");
    root_ = (top_ / "tree").string();
  }
  ~ScanTest() override {
    setenv("HOME", before_.c_str(), 1);
    fs::remove_all(top_);
  }

  void write(const fs::path& path, const std::string& text = "x") const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }
  // `words` are the test's own: none needs quoting.
  void git(const std::string& words, const std::string& below = "") const {
    const std::string line = "git -C " + (root_ + "/" + below) +
                             " -c user.name=n -c user.email=e -c init.defaultBranch=main "
                             "-c protocol.file.allow=always " +
                             words + " >/dev/null 2>&1";
    ASSERT_EQ(system(line.c_str()), 0) << line;
  }
  Paths paths(By by = By::git) const {
    Paths found;
    const auto scanned = scan(root_, by);
    EXPECT_TRUE(scanned) << (scanned ? "" : scanned.error().message);
    if (scanned)
      for (const Entry& entry : scanned->manifest)
        found.push_back(entry.path);
    return found;
  }
  void expect(const Paths& wanted) const {
    EXPECT_EQ(paths(By::git), wanted);
    EXPECT_EQ(paths(By::own_rules), wanted);
  }

  fs::path top_;
  std::string root_;
  std::string before_;
};

TEST_F(ScanTest, SaysWhatStatSays) {
  write("plain", "four");
  write("run.sh");
  fs::permissions(root_ + "/run.sh", fs::perms::owner_exec, fs::perm_options::add);
  fs::create_symlink("/etc", root_ + "/out");
  ASSERT_EQ(mkfifo((root_ + "/pipe").c_str(), 0600), 0);
  const auto scanned = scan(root_).value();
  ASSERT_EQ(scanned.manifest.size(), 3U);
  EXPECT_EQ(scanned.manifest[0].path, "out");
  EXPECT_EQ(scanned.manifest[0].kind, Kind::link);
  EXPECT_EQ(scanned.manifest[0].target, "/etc");
  EXPECT_EQ(scanned.manifest[1].size, 4U);
  EXPECT_FALSE(scanned.manifest[1].executable);
  EXPECT_TRUE(scanned.manifest[2].executable);
  EXPECT_EQ(scanned.special, Paths{"pipe"});
}

TEST_F(ScanTest, AsksGitInARepository) {
  git("init");
  write("tracked.log");
  write("deleted");
  git("add -A -f");
  write(".gitignore", "*.log\nbuild/\n");
  write("new");
  write("x.log");
  write("build/out");
  fs::remove(root_ + "/deleted");
  EXPECT_EQ(paths(), (Paths{".gitignore", "new", "tracked.log"}));
}

TEST_F(ScanTest, ABareNameIsFoundThroughTheFoldersAbove) {
  git("init");
  write(".gitignore", "*.log\n/sub/x\n");
  write("sub/x");
  write("sub/y");
  write("sub/z.log");
  root_ += "/sub";
  expect({"y"});
}

TEST_F(ScanTest, AFolderOutsideOfRepositoriesHasIgnoreFilesToo) {
  write(".gitignore", "*.log\n");
  write("a/.gitignore", "!keep.log\n/only\n");
  write("a/keep.log");
  write("a/only");
  write("a/b/only");
  write("x.log");
  expect({".gitignore", "a/.gitignore", "a/b/only", "a/keep.log"});
}

TEST_F(ScanTest, LockstepignoreTakesAway) {
  git("init");
  write(".gitignore", "*.log\n");
  write(".lockstepignore", "data/\n*.bin\n!keep.bin\n!x.log\n");
  write("data/big");
  write("a.bin");
  write("keep.bin");
  write("x.log");
  write("sub/.lockstepignore", "/here\n!a.bin");
  write("sub/here");
  write("sub/deep/here");
  write("sub/a.bin");
  expect({".gitignore", ".lockstepignore", "keep.bin", "sub/.lockstepignore", "sub/a.bin",
          "sub/deep/here"});
}

// Most projects ignore outputs, but a resumed job needs them.
TEST_F(ScanTest, EverythingIsWhatNothingIgnores) {
  git("init");
  write(".gitignore", "outputs/\n");
  write("outputs/.lockstepignore", "*.bin\n");
  write("outputs/a.bin");
  write("outputs/deep/b");
  root_ += "/outputs";
  EXPECT_EQ(paths(By::git), Paths{});
  EXPECT_EQ(paths(By::nothing), (Paths{".lockstepignore", "a.bin", "deep/b"}));
}

TEST_F(ScanTest, RepositoriesInsideBelong) {
  git("init");
  write("lib/.gitignore", "*.o\n");
  write("lib/code");
  write("lib/x.o");
  git("init", "lib");
  write(".gitignore", "*.c\n");
  write("lib/y.c");  // ignore files above do not apply inside another repository
  expect({".gitignore", "lib/.gitignore", "lib/code", "lib/y.c"});
  write(".lockstepignore", "lib\n");
  expect({".gitignore", ".lockstepignore"});
}

TEST_F(ScanTest, SubmodulesBelongAndEmptyOnesAreNothing) {
  fs::create_directories(top_ / "other");
  root_ = (top_ / "other").string();
  git("init");
  write("inner");
  git("add -A");
  git("commit -m x");
  root_ = (top_ / "tree").string();
  git("init");
  git("submodule add ../other sub");
  EXPECT_EQ(paths(), (Paths{".gitmodules", "sub/inner"}));
  git("submodule deinit -f sub");
  EXPECT_EQ(paths(), (Paths{".gitmodules"}));
}

// The index still names the files behind the link; only the link is sent.
TEST_F(ScanTest, NothingBehindALinkIsSent) {
  fs::create_directories(top_ / "secret");
  std::ofstream(top_ / "secret/key") << "x";
  write("dir/key");
  git("init");
  git("add -A");
  fs::remove_all(root_ + "/dir");
  fs::create_symlink(top_ / "secret", root_ + "/dir");
  expect({"dir"});
}

TEST_F(ScanTest, NoProgramOfARepositoryIsRun) {
  git("init");
  write("x");
  write("../hook", "#!/bin/sh\ntouch " + root_ + "/ran\n");
  fs::permissions(top_ / "hook", fs::perms::owner_all);
  git("config core.fsmonitor " + (top_ / "hook").string());
  EXPECT_EQ(paths(), Paths{"x"});
}

// A sparse index lacks a tree that only the remote has: git would start the remote's program.
TEST_F(ScanTest, NoProgramOfARemoteIsRun) {
  git("init");
  write("in/x");
  write("out/y");
  git("add -A");
  git("commit -m x");
  git("sparse-checkout init --cone --sparse-index");
  git("sparse-checkout set in");
  write("../program", "#!/bin/sh\ntouch " + (top_ / "ran").string() + "\n");
  fs::permissions(top_ / "program", fs::perms::owner_all);
  git("config core.repositoryformatversion 1");
  git("config extensions.partialClone origin");
  git("config remote.origin.promisor true");
  git("config remote.origin.url " + root_);
  git("config remote.origin.uploadpack " + (top_ / "program").string());
  git("config protocol.file.allow always");  // overrides protocol.allow=never
  const std::string line = "cd " + root_ + " && t=$(git rev-parse HEAD:out) && rm -f " +
                           ".git/objects/$(echo $t | cut -c1-2)/$(echo $t | cut -c3-)";
  ASSERT_EQ(system(line.c_str()), 0);
  EXPECT_EQ(paths(), Paths{"in/x"});
  EXPECT_FALSE(fs::exists(top_ / "ran"));
}

TEST_F(ScanTest, TrustsARepositoryAsGitDoes) {
  EXPECT_TRUE(is_trusted_owner(1000, 1000, ""));
  EXPECT_TRUE(is_trusted_owner(0, 1000, ""));
  EXPECT_FALSE(is_trusted_owner(1001, 1000, "1001"));  // sudo matters only for root
  EXPECT_FALSE(is_trusted_owner(1000, 0, ""));
  EXPECT_TRUE(is_trusted_owner(1000, 0, "1000"));
  EXPECT_FALSE(is_trusted_owner(1000, 0, "x"));
}

TEST_F(ScanTest, ABrokenRepositoryIsReadByOurOwnRules) {
  git("init");
  write(".gitignore", "*.log");
  write("x.log");
  write(".git/config", "[core\n");
  const auto scanned = scan(root_).value();
  EXPECT_EQ(scanned.manifest.size(), 1U);
  ASSERT_EQ(scanned.remarks.size(), 1U);
  EXPECT_NE(scanned.remarks[0].find("config"), std::string::npos) << scanned.remarks[0];
}

TEST_F(ScanTest, ExcludesOfTheRepositoryAndOfTheUserHold) {
  git("init");
  write(".git/info/exclude", "mine\n!both\n");
  write("../.gitconfig", "[core]\n\texcludesFile = ~/excludes\n");
  write("../excludes", "users\nboth\n");
  for (const char* name : {"mine", "users", "both", "sent"})
    write(name);
  expect({"both", "sent"});
  EXPECT_EQ(excludes_file_in("[user]\nexcludesfile=a\n[core]\n x=1\n ExcludesFile = \"b c\"\n", ""),
            "b c");
}

TEST_F(ScanTest, NamesMayHoldAnyByte) {
  git("init");
  write("new\nline");
  write("\xFF\xFE");
  write("-rf");
  write(" lead");
  expect({" lead", "-rf", "new\nline", "\xFF\xFE"});
}

// Compares our rules with git on random trees and ignore files.
TEST_F(ScanTest, OwnRulesAreGits) {
  const std::vector<std::string> names = {"a", "b", "ab", "c.o", "x.log", "-a", "[a]", "a b", "a "};
  const std::vector<std::string> parts = {
      "a",     "b",           "ab",  "*",     "**",    "?",    "/",     "/", "*.o",
      ".log",  "!",           "\\",  " ",     "[a-b]", "[!a]", "[^b]*", "#", "c.o",
      "x.log", "[[:alpha:]]", "\\*", "\\[a]", "-",     "a**",  "**b",   "[", "]"};
  const int trees = getenv("SCAN_TREES") == nullptr ? 20 : atoi(getenv("SCAN_TREES"));
  for (int seed = 0; seed < trees; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto below = [&random](std::size_t count) { return random() % count; };
    fs::remove_all(root_);
    fs::create_directories(root_);
    git("init");
    Paths folders = {""};
    for (int i = 0; i < 12; ++i) {
      const std::string folder = folders[below(folders.size())] + names[below(names.size())] + "/";
      if (!fs::exists(fs::path(root_) / folder.substr(0, folder.size() - 1))) {
        fs::create_directories(fs::path(root_) / folder);
        folders.push_back(folder);
      }
    }
    for (const std::string& folder : folders) {
      for (int i = 0; i < 4; ++i)
        if (const std::string path = folder + names[below(names.size())];
            !fs::exists(fs::path(root_) / path))
          write(path);
      if (below(2) == 0) continue;
      std::string text;
      for (std::size_t lines = below(6) + 1; lines > 0; --lines) {
        for (std::size_t count = below(5) + 1; count > 0; --count)
          text += parts[below(parts.size())];
        text += below(5) == 0 ? "\r\n" : "\n";
      }
      write(folder + ".gitignore", text);
    }
    ASSERT_EQ(paths(By::own_rules), paths(By::git)) << "seed " << seed << " in " << root_;
  }
}

}  // namespace
}  // namespace lockstep::sync
