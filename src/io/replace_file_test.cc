#include "io/replace_file.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace lockstep::io {
namespace {

class ReplaceFile : public testing::Test {
 protected:
  ReplaceFile() {
    std::string name = testing::TempDir() + "replace.XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~ReplaceFile() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder_), {});
  }

  std::string folder_;
};

TEST_F(ReplaceFile, MakesAndReplacesAndLeavesNoDraft) {
  ASSERT_TRUE(replace_file(path("f"), "old and longer"));
  ASSERT_TRUE(replace_file(path("f"), "new"));
  EXPECT_EQ(*read_file(path("f")), "new");
  EXPECT_EQ(files(), 1);
  EXPECT_TRUE(replace_file("/dev/null", "x"));
  EXPECT_EQ(replace_file(path("no/such"), "x").error().code, Errc::not_found);
}

TEST_F(ReplaceFile, APlantedLinkIsNotWrittenThrough) {
  ASSERT_TRUE(write_file(path("victim"), "precious"));
  ASSERT_EQ(symlink("victim", path("f").c_str()), 0);
  ASSERT_EQ(symlink("nowhere", path("g").c_str()), 0);
  ASSERT_TRUE(replace_file(path("f"), "new"));
  ASSERT_TRUE(replace_file(path("g"), "new"));
  EXPECT_EQ(*read_file(path("victim")), "precious");
  EXPECT_EQ(*read_file(path("f")), "new");
  EXPECT_EQ(files(), 3);
}

TEST_F(ReplaceFile, AFileWhoseNameLeavesNoRoomForADraftIsWrittenInPlace) {
  const std::string longest = path(std::string(255, 'f'));
  ASSERT_TRUE(write_file(longest, "old and longer"));
  ASSERT_TRUE(replace_file(longest, "new"));
  EXPECT_EQ(*read_file(longest), "new");
}

}  // namespace
}  // namespace lockstep::io
