#include "hosts/place.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace lockstep::hosts {
namespace {

using Numbers = std::vector<std::size_t>;

TEST(NodeNumbers, AreListsAndRanges) {
  EXPECT_EQ(parse_node_numbers("all", 3).value(), (Numbers{0, 1, 2}));
  EXPECT_EQ(parse_node_numbers("1", 3).value(), Numbers{1});
  EXPECT_EQ(parse_node_numbers("1-2", 3).value(), (Numbers{1, 2}));
  EXPECT_EQ(parse_node_numbers("2,0-1,1", 3).value(), (Numbers{0, 1, 2}));
  EXPECT_EQ(parse_node_numbers("3", 3).error().message, "--nodes 3: there are 3 nodes, 0 to 2");
  for (const char* text : {"x", "1-", "-1", "2-1", "0,,1", "0-99999999999"})
    EXPECT_FALSE(parse_node_numbers(text, 3)) << text;
}

class PlaceTest : public ::testing::Test {
 protected:
  PlaceTest() {
    const std::string folder = ::testing::TempDir() + "places_" +
                               ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder);
    registry_.emplace(Registry::open(folder).value());
    Cluster cluster{.name = "gpus", .source = "ssh", .created_ms = 0, .nodes = {}};
    cluster.nodes.push_back({{.host = "a", .user = "me"}});
    cluster.nodes.push_back({{.host = "b", .key_path = "/k"}});
    EXPECT_TRUE(registry_->add(cluster));
  }
  std::optional<Registry> registry_;
};

TEST_F(PlaceTest, AClustersNodesHaveItsNameAndItsPins) {
  const auto places = find_places(*registry_, "gpus", std::nullopt, {.jump = "j"});
  ASSERT_TRUE(places);
  ASSERT_EQ(places->size(), 2U);
  EXPECT_EQ((*places)[1].name, "gpus-1");
  EXPECT_EQ((*places)[1].target.key_path, "/k");
  EXPECT_EQ((*places)[1].target.jump, "j");
  EXPECT_EQ((*places)[1].pins, registry_->pins_file("gpus"));
  EXPECT_EQ(find_places(*registry_, "gpus", "1", {})->size(), 1U);
}

TEST_F(PlaceTest, AnyOtherNameIsAHost) {
  const auto places = find_places(*registry_, "me@c:23", std::nullopt, {});
  ASSERT_TRUE(places);
  EXPECT_EQ(places->front().name, "me@c");
  EXPECT_EQ(places->front().target.port, 23);
  EXPECT_EQ(places->front().pins, "");
  EXPECT_FALSE(find_places(*registry_, "c", "1", {}));
}

TEST_F(PlaceTest, AKeyIsKeptForCommandsInOtherFolders) {
  const std::filesystem::path folder = ::testing::TempDir();
  std::ofstream(folder / "key") << "key";
  std::filesystem::current_path(folder);
  const std::string key = std::filesystem::current_path() / "key";
  EXPECT_EQ(check_key_path("key").value(), key);
  EXPECT_EQ(check_key_path(key).value(), key);
  const auto places = find_places(*registry_, "me@c", std::nullopt, {.key_path = "key"});
  ASSERT_TRUE(places);
  EXPECT_EQ(places->front().target.key_path, key);
}

TEST_F(PlaceTest, TwoUsersAreOneTooMany) {
  EXPECT_FALSE(find_places(*registry_, "gpus", "0", {.user = "you"}));
  EXPECT_TRUE(find_places(*registry_, "gpus", "1", {.user = "you"}));
  EXPECT_FALSE(find_places(*registry_, "me@c", std::nullopt, {.user = "you"}));
}

}  // namespace
}  // namespace lockstep::hosts
