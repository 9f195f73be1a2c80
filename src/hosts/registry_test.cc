#include "hosts/registry.h"

#include "base/error_testing.h"
#include "hosts/state_file.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace lockstep::hosts {
namespace {

namespace fs = std::filesystem;

class RegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "registry_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + "/a/b";
    fs::remove_all(fs::path(folder_).parent_path().parent_path());
  }

  static Cluster gpus() {
    Cluster cluster{.name = "gpus", .source = "ssh", .created_ms = 5, .nodes = {}};
    cluster.nodes.push_back(
        {{.host = "a", .user = "me", .port = 2222, .key_path = "/k", .jump = "j"}, 8});
    cluster.nodes.push_back({{.host = "b"}});
    return cluster;
  }

  std::string folder_;
};

TEST_F(RegistryTest, AClusterIsKeptAsItWasGiven) {
  ASSERT_TRUE(Registry::open(folder_)->add(gpus()));
  const auto again = Registry::open(folder_);
  ASSERT_TRUE(again) << again.error().message;
  const auto found = again->find("gpus");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->created_ms, 5);
  ASSERT_EQ(found->nodes.size(), 2U);
  EXPECT_EQ(found->nodes[0].target, gpus().nodes[0].target);
  EXPECT_EQ(found->nodes[0].slots, 8);
  EXPECT_EQ(found->nodes[1].target, gpus().nodes[1].target);
  EXPECT_FALSE(found->nodes[1].slots);
  struct stat info {};
  stat((folder_ + "/state.db").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(RegistryTest, NamesAreTakenOnceAndFreedByRemoval) {
  const auto registry = Registry::open(folder_);
  ASSERT_TRUE(registry->add(gpus()));
  EXPECT_EQ(code_of(registry->add(gpus())), Errc::already_exists);
  EXPECT_EQ(registry->list()->size(), 1U);
  std::ofstream(registry->pins_file("gpus")) << "key";
  ASSERT_TRUE(registry->remove("gpus"));
  EXPECT_FALSE(fs::exists(registry->pins_file("gpus")));
  EXPECT_EQ(registry->find("gpus").error().hint,
            "make a cluster with lockstep cluster add NAME --host user@host");
  EXPECT_EQ(code_of(registry->remove("gpus")), Errc::not_found);
  EXPECT_TRUE(registry->add(gpus()));
  EXPECT_EQ(registry->find("gpu").error().hint, "there are: gpus");
}

TEST_F(RegistryTest, RemovalKeepsTheHostKeysOfAClusterThatWasAddedMeanwhile) {
  const auto registry = Registry::open(folder_);
  ASSERT_TRUE(registry->add(gpus()));
  std::ofstream(registry->pins_file("gpus")) << "key";
  // Stands in for another process that adds the name right after the removal.
  const auto database = open_state(folder_);
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute(
      "CREATE TRIGGER again AFTER DELETE ON clusters BEGIN INSERT INTO clusters VALUES "
      "(old.name, old.source, 9); END"));
  ASSERT_TRUE(registry->remove("gpus"));
  EXPECT_EQ(registry->find("gpus")->created_ms, 9);
  EXPECT_TRUE(fs::exists(registry->pins_file("gpus")));
}

TEST_F(RegistryTest, TwoProcessesShareOneFile) {
  const auto one = Registry::open(folder_);
  const auto two = Registry::open(folder_);
  ASSERT_TRUE(one->add(gpus()));
  EXPECT_TRUE(two->find("gpus"));
}

TEST_F(RegistryTest, ADamagedFileIsNamedAndKept) {
  fs::create_directories(folder_);
  const std::string text(8192, 'x');
  std::ofstream(folder_ + "/state.db") << text;
  const auto opened = Registry::open(folder_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(code_of(opened), Errc::corrupt);
  EXPECT_NE(opened.error().message.find("state.db is damaged"), std::string::npos);
  EXPECT_EQ(fs::file_size(folder_ + "/state.db"), text.size());
}

TEST_F(RegistryTest, ANewerFileIsNotTouched) {
  ASSERT_TRUE(Registry::open(folder_)->add(gpus()));
  {
    const auto database = db::Database::open(folder_ + "/state.db", {});
    // Without migrations, the file counts as newer than this program.
    EXPECT_FALSE(database);
  }
  const std::string_view three[] = {"", "", "SELECT 1"};
  ASSERT_TRUE(db::Database::open(folder_ + "/state.db", three));
  const auto opened = Registry::open(folder_);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("newer lockstep (schema 3, this version knows 2)"),
            std::string::npos)
      << opened.error().message;
}

TEST(ClusterName, IsPlain) {
  for (const char* good : {"gpus", "a.b_c-1", "8x"})
    EXPECT_TRUE(check_cluster_name(good)) << good;
  for (const char* bad : {"", "-x", "a b", "a/b", "local", "ü"})
    EXPECT_FALSE(check_cluster_name(bad)) << bad;
}

}  // namespace
}  // namespace lockstep::hosts
