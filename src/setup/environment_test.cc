#include "setup/environment.h"

#include "setup/places.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace lockstep::setup {
namespace {

namespace fs = std::filesystem;
using Kind = Environment::Kind;

class EnvironmentTest : public ::testing::Test {
 protected:
  EnvironmentTest() {
    top_ =
        fs::path(::testing::TempDir()) /
        (std::string("setup_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(top_);
    fs::create_directories(top_ / "code/src");
    setenv("XDG_STATE_HOME", (top_ / "state").c_str(), 1);
  }
  ~EnvironmentTest() override { unsetenv("XDG_STATE_HOME"); }

  std::string path(const std::string& below) const { return (top_ / below).string(); }
  fs::path only_record() const {
    return fs::directory_iterator(top_ / "state/lockstep/projects")->path() / "environment.json";
  }

  fs::path top_;
};

TEST(Variables, OfEachKind) {
  using Strings = std::vector<std::string>;
  const Strings own = {"HOME=/h", "PATH=/usr/bin:/bin", "PYTHONPATH=/mine"};
  EXPECT_EQ(variables_of({.kind = Kind::none}, own), Strings{});
  EXPECT_EQ(variables_of({.kind = Kind::system, .python = "/usr/bin/python3"}, own), Strings{});
  EXPECT_EQ(variables_of({.kind = Kind::venv, .prefix = "/v", .local = {"/a", "/b"}}, own),
            (Strings{"PATH=/v/bin:/usr/bin:/bin", "VIRTUAL_ENV=/v", "PYTHONPATH=/a:/b:/mine"}));
  EXPECT_EQ(variables_of({.kind = Kind::conda, .prefix = "/c"}, {"PYTHONHOME=/usr"}),
            (Strings{"PATH=/c/bin", "CONDA_PREFIX=/c", "CONDA_DEFAULT_ENV=/c", "PYTHONHOME="}));
  EXPECT_EQ(variables_of({.kind = Kind::none, .local = {"/a"}}, {}), Strings{"PYTHONPATH=/a"});
}

TEST_F(EnvironmentTest, IsThatOfTheProjectAbove) {
  const Environment kept{
      .kind = Kind::venv, .prefix = "/v", .python = "/v/bin/python", .local = {"/l"}};
  ASSERT_TRUE(keep_environment(path("code"), kept));
  EXPECT_EQ(find_environment(path("code/src/")).value(), kept);
  EXPECT_EQ(find_environment(path("code")).value(), kept);
  EXPECT_EQ(find_environment(path("code2")).value(), std::nullopt);
  EXPECT_EQ(find_environment(path("")).value(), std::nullopt);
  EXPECT_EQ(project_environment(path("code"), {"PATH=/bin"}).value(),
            (std::vector<std::string>{"PATH=/v/bin:/bin", "VIRTUAL_ENV=/v", "PYTHONPATH=/l"}));
  EXPECT_EQ(project_environment(path("other"), {"PATH=/bin"}).value(), std::vector<std::string>{});
  // The folder may be made later and reached through a link.
  ASSERT_TRUE(keep_environment(path("later"), kept));
  fs::create_directory_symlink(top_, top_ / "link");
  fs::create_directory(top_ / "later");
  EXPECT_EQ(find_environment(path("link/later")).value(), kept);
}

TEST_F(EnvironmentTest, DamageIsNamed) {
  ASSERT_TRUE(keep_environment(path("code"), {}));
  const fs::path record = only_record();
  std::ofstream(record) << "{\"folder\": \"" << plain_folder(path("code")) << "\", \"kind\": 1}";
  const auto found = find_environment(path("code"));
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("environment.json is damaged"), std::string::npos);
  std::ofstream(record) << "nothing";
  EXPECT_FALSE(find_environment(path("code")));
}

TEST(Key, IsAFileName) {
  EXPECT_EQ(key_of("/home/me/my code").substr(0, 8), "my_code-");
  EXPECT_NE(key_of("/home/me/code"), key_of("/home/you/code"));
  EXPECT_LT(key_of("/" + std::string(400, 'x')).size(), 100U);
}

}  // namespace
}  // namespace lockstep::setup
