#include "agent/dcgm_job_files.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::agent {
namespace {

class DcgmJobFilesTest : public ::testing::Test {
 protected:
  DcgmJobFilesTest() {
    char name[] = "/tmp/dcgm-XXXXXX";
    folder = mkdtemp(name);
  }
  ~DcgmJobFilesTest() override { std::filesystem::remove_all(folder); }
  std::string at(const std::string& name) const { return folder + "/" + name; }
  std::string text(const std::string& name) const { return io::read_file(at(name)).value_or("-"); }
  std::string folder;
};

TEST_F(DcgmJobFilesTest, NamesTheJobWhileItUsesTheGpu) {
  ASSERT_TRUE(io::write_file(at("1"), "other\n"));
  auto files = DcgmJobFiles::open(folder, "1234").value();
  files.show({0, 1});
  EXPECT_EQ(text("0"), "1234\n");
  EXPECT_EQ(text("1"), "other\n1234\n");
  files.show({1, 2});
  EXPECT_EQ(text("0"), "-");
  EXPECT_EQ(text("2"), "1234\n");
  files.show({});
  EXPECT_EQ(text("1"), "other\n");
  EXPECT_EQ(text("2"), "-");
}

TEST_F(DcgmJobFilesTest, IsNotLedAstray) {
  ASSERT_TRUE(io::write_file(at("precious"), "mine\n"));
  ASSERT_EQ(symlink("precious", at("0").c_str()), 0);
  ASSERT_EQ(mkfifo(at("1").c_str(), 0666), 0);
  auto files = DcgmJobFiles::open(folder, "1234").value();
  files.show({0, 1, 2});
  EXPECT_EQ(text("precious"), "mine\n");
  EXPECT_EQ(text("2"), "1234\n");
  files.show({});
  EXPECT_EQ(text("precious"), "mine\n");
  EXPECT_TRUE(std::filesystem::is_fifo(at("1")));
}

TEST_F(DcgmJobFilesTest, NeedsAFolder) {
  const auto opened = DcgmJobFiles::open(at("none"), "1234");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, "--dcgm-job-dir " + at("none") + ": no such folder");
}

}  // namespace
}  // namespace lockstep::agent
