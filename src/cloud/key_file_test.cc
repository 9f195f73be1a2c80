#include "cloud/key_file.h"

#include "base/error_testing.h"
#include "io/fd.h"
#include "io/own_folders.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <filesystem>

namespace lockstep::cloud {
namespace {

constexpr std::array<std::string_view, 2> kNames = {"api_key", "apikey"};
constexpr KeyPlaces kPlaces{
    .variable = "X_KEY", .file = ".x/keys", .names = kNames, .advice = "ask"};

class KeyFile : public ::testing::Test {
 protected:
  KeyFile() {
    std::string folder = (std::filesystem::temp_directory_path() / "keysXXXXXX").string();
    ground.home = mkdtemp(folder.data());
    ground.env = [this](std::string_view) { return set; };
  }
  ~KeyFile() override { std::filesystem::remove_all(ground.home); }
  void write(const char* text, unsigned mode) const {
    ASSERT_TRUE(io::make_folders(ground.home + "/.x"));
    ASSERT_TRUE(io::write_file(ground.home + "/.x/keys", text));
    ASSERT_EQ(chmod((ground.home + "/.x/keys").c_str(), mode), 0);
  }

  Ground ground;
  std::optional<std::string> set;
};

TEST_F(KeyFile, TheVariableWins) {
  write("api_key = fromfile\n", 0600);
  set = "fromenv";
  EXPECT_EQ(find_api_key(ground, kPlaces)->key, "fromenv");
  set = "";
  const auto found = find_api_key(ground, kPlaces);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->key, "fromfile");
  EXPECT_EQ(found->where, "~/.x/keys");
  EXPECT_FALSE(found->exposed);
}

TEST_F(KeyFile, AnOpenFileIsToldOf) {
  write("[default]\napikey = \"quoted\"\n", 0644);
  const auto found = find_api_key(ground, kPlaces);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->key, "quoted");
  EXPECT_TRUE(found->exposed);
}

TEST_F(KeyFile, NoneAndBrokenOnesAreOneLineWithoutTheKey) {
  EXPECT_EQ(code_of(find_api_key(ground, kPlaces)), Errc::not_found);
  EXPECT_EQ(find_api_key(ground, kPlaces).error().hint, "ask");
  for (const char* text : {"api_key = two words\n", "other = x\n", ""}) {
    write(text, 0600);
    const auto found = find_api_key(ground, kPlaces);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(code_of(found), Errc::invalid_input);
    EXPECT_EQ(found.error().message.find("two"), std::string::npos);
  }
  set = std::string("a\nb");
  EXPECT_FALSE(find_api_key(ground, kPlaces));
}

}  // namespace
}  // namespace lockstep::cloud
