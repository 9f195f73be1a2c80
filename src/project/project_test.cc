#include "project/project.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace lockstep::project {
namespace {

namespace fs = std::filesystem;

class ProjectTest : public ::testing::Test {
 protected:
  ProjectTest() {
    const fs::path top =
        fs::path(::testing::TempDir()) /
        (std::string("project_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(top);
    fs::create_directories(top / "home/code/src/deep");
    home_ = fs::canonical(top / "home");
    const char* home = getenv("HOME");
    before_ = home == nullptr ? "" : home;
    setenv("HOME", home_.c_str(), 1);
  }
  ~ProjectTest() override { setenv("HOME", before_.c_str(), 1); }

  std::string path(const std::string& below) const { return (home_ / below).string(); }
  void make_repository(const std::string& below) const {
    fs::create_directories(home_ / below / ".git");
    std::ofstream(home_ / below / ".git/HEAD") << "ref: refs/heads/main\n";
  }

  fs::path home_;
  std::string before_;
};

TEST_F(ProjectTest, IsGitsTopFolder) {
  make_repository("code");
  const auto project = find_project(path("code/src/deep"), std::nullopt).value();
  EXPECT_EQ(project.root, path("code"));
  EXPECT_EQ(project.name, "code");
  EXPECT_EQ(project.folder, "src/deep");
  EXPECT_EQ(find_project(path("code"), std::nullopt)->folder, "");
}

TEST_F(ProjectTest, IsTheNearestRepositoryAlsoOfAWorktree) {
  make_repository("code");
  std::ofstream(path("code/src/.git")) << "gitdir: /elsewhere\n";
  EXPECT_EQ(find_project(path("code/src/deep"), std::nullopt)->root, path("code/src"));
}

TEST_F(ProjectTest, IsTheFolderItselfWithoutARepository) {
  fs::create_directories(path("code/.git"));  // git does not accept an empty .git either
  const auto project = find_project(path("code/src"), std::nullopt).value();
  EXPECT_EQ(project.root, path("code/src"));
  EXPECT_EQ(project.folder, "");
}

TEST_F(ProjectTest, FollowsLinksToTheFolder) {
  fs::create_symlink("code/src", path("link"));
  EXPECT_EQ(find_project(path("link"), std::nullopt)->root, path("code/src"));
}

TEST_F(ProjectTest, IsWhatWasGiven) {
  make_repository("code");
  auto project = find_project(path("code/src/deep"), "..").value();
  EXPECT_EQ(project.root, path("code/src"));
  EXPECT_EQ(project.folder, "deep");
  project = find_project(path("code"), path("code/src")).value();
  EXPECT_EQ(project.root, path("code/src"));
  EXPECT_EQ(project.folder, "");
  EXPECT_EQ(find_project(path("code/src"), path("code/src/deep"))->folder, "");
  // "/x/code2" does not lie in "/x/code".
  fs::create_directories(path("code/src2"));
  EXPECT_EQ(find_project(path("code/src2"), path("code/src"))->folder, "");
}

TEST_F(ProjectTest, IsNeverAllOfAHomeUnlessNamed) {
  EXPECT_NE(find_project(path(""), std::nullopt).error().message.find("which is your home"),
            std::string::npos);
  EXPECT_FALSE(find_project(path(".."), std::nullopt));
  EXPECT_NE(find_project("/", std::nullopt).error().message.find("the whole machine"),
            std::string::npos);
  make_repository("");
  EXPECT_FALSE(find_project(path("code"), std::nullopt));
  EXPECT_EQ(find_project(path("code"), path(""))->root, home_.string());
  EXPECT_EQ(find_project(path("code"), path(""))->folder, "code");
  EXPECT_EQ(find_project("/", "/")->name, "root");
}

TEST_F(ProjectTest, IsNoFolderThatEverybodyCanWriteToUnlessNamed) {
  fs::permissions(path("code"), fs::perms::all | fs::perms::sticky_bit);
  const auto refused = find_project(path("code"), std::nullopt);
  ASSERT_FALSE(refused);
  EXPECT_EQ(code_of(refused), Errc::invalid_input);
  EXPECT_NE(refused.error().message.find("any user can write there"), std::string::npos);
  EXPECT_NE(refused.error().hint.find("--sync"), std::string::npos);
  EXPECT_EQ(find_project(path("code"), ".")->root, path("code"));
  EXPECT_EQ(find_project(path("code/src"), std::nullopt)->root, path("code/src"));
  make_repository("code");
  EXPECT_EQ(find_project(path("code"), std::nullopt)->root, path("code"));
  EXPECT_TRUE(is_everybodys(040777, 0, 1000));      // another user's folder
  EXPECT_TRUE(is_everybodys(041777, 0, 0));         // root's /tmp, for root
  EXPECT_FALSE(is_everybodys(040777, 1000, 1000));  // a mount of Windows, owned by the user
  EXPECT_FALSE(is_everybodys(040775, 0, 1000));
}

TEST_F(ProjectTest, NamesOnHostsHaveNoDotBefore) {
  fs::create_directories(path(".ssh"));
  EXPECT_EQ(find_project(path(".ssh"), std::nullopt)->name, "ssh");
}

TEST_F(ProjectTest, KnowsThePlaceOfAPath) {
  const Project project{.root = "/r/p", .name = "p", .folder = "sub"};
  EXPECT_EQ(path_in_project(project, "out").value(), "sub/out");
  EXPECT_EQ(path_in_project(project, "../out//x/.").value(), "out/x");
  EXPECT_EQ(path_in_project(project, "..").value(), "");
  EXPECT_EQ(path_in_project(project, "/r/p/a").value(), "a");
  for (const char* path : {"../..", "/etc", "/r/pp", "../../p2/x"})
    EXPECT_FALSE(path_in_project(project, path)) << path;
}

TEST_F(ProjectTest, KnowsTheWayToAFileFromAJobsFolder) {
  const Project project{.root = "/r/p", .name = "p", .folder = "sub"};
  EXPECT_EQ(path_from_folder(project, "sub/train.py", "p/sub"), "train.py");
  EXPECT_EQ(path_from_folder(project, "train.py", "p/sub/"), "../train.py");
  EXPECT_EQ(path_from_folder(project, "sub/train.py", "p"), "sub/train.py");
  EXPECT_EQ(path_from_folder(project, "sub/train.py", "runs/./7"), "../../p/sub/train.py");
  EXPECT_EQ(path_from_folder(project, "train.py", "runs/../p"), "train.py");
  for (const char* home : {".", "./", "", "p/.."})
    EXPECT_EQ(path_from_folder(project, "train.py", home), "p/train.py") << home;
  for (const char* elsewhere : {"/home/me/p", "/", "..", "../you", "p/../../you"})
    EXPECT_EQ(path_from_folder(project, "train.py", elsewhere), std::nullopt) << elsewhere;
  const Project absolute{.root = "/r/p", .name = "/data/p", .folder = "sub"};
  EXPECT_EQ(path_from_folder(absolute, "sub/train.py", "/data/p/sub"), "train.py");
  EXPECT_EQ(path_from_folder(absolute, "train.py", "/data/runs"), "../p/train.py");
  EXPECT_EQ(path_from_folder(absolute, "train.py", "runs"), "/data/p/train.py");
}

TEST_F(ProjectTest, NamesWhatIsNotThere) {
  EXPECT_EQ(code_of(find_project(path("nowhere"), std::nullopt)), Errc::not_found);
  std::ofstream(path("file")) << "x";
  EXPECT_NE(find_project(path("code"), path("file")).error().message.find("must be a folder"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::project
