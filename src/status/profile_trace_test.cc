#include "status/profile_trace.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <utility>

namespace lockstep::status {
namespace {

class ProfileTrace : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(io::write_file(folder_ + "/" + name, text));
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  // Returns the first bytes of a trace, or its error.
  std::string read(const std::string& name) {
    std::string all;
    const Status done = read_trace(folder_ + "/" + name, [&](std::string_view piece) -> Status {
      if (all.size() < (8UL << 20)) all += piece;
      return {};
    });
    return done ? all : done.error().message;
  }

  std::string folder_ = "/tmp/profile_trace_XXXXXX";
};

TEST_F(ProfileTrace, OnlyAFinishedTraceOfTheProfileIsFound) {
  for (const char* name :
       {"profile-1-rank-3_77.json.tmp", "profile-2-rank-3_77.json", "profile-1-rank-33_77.json",
        "profile-1-rank-3_.json", "profile-1-rank-3_7x.json", "profile-1-rank-3.json"})
    put(name, "");
  EXPECT_FALSE(finished_trace(folder_, 1, 3));
  put("profile-1-rank-3_77.json", "");
  EXPECT_EQ(finished_trace(folder_, 1, 3), folder_ + "/profile-1-rank-3_77.json");
}

TEST_F(ProfileTrace, WhoAsksTheAgentLooksForTraces) {
  using What = ProfileQuery::What;
  const auto states = [this](What what) {
    ProfileAnswer says{.folder = folder_,
                       .ranks = {{.rank = 0, .state = ProfileState::gone},
                                 {.rank = 1, .state = ProfileState::ordered}}};
    look_for_traces({.what = what, .id = 2}, says);
    return std::pair(says.ranks[0].state, says.ranks[1].state);
  };
  put("profile-2-rank-0_7.json", "");
  put("profile-1-rank-1_7.json", "");
  put("profile-21-rank-1_7.json.tmp", "");
  put("dynolog", "");
  ASSERT_EQ(symlink("dynolog", (folder_ + "/profile-1-rank-0_7.json").c_str()), 0);
  ProfileAnswer refused{.refusal = "another profile", .folder = folder_};
  look_for_traces({.what = What::start, .id = 2}, refused);
  EXPECT_EQ(files(), 5U) << "a profile that has not begun removes nothing";
  EXPECT_EQ(states(What::start), (std::pair(ProfileState::written, ProfileState::ordered)));
  EXPECT_EQ(files(), 2U) << "the traces of earlier profiles are removed";
  EXPECT_EQ(states(What::look), (std::pair(ProfileState::written, ProfileState::ordered)));
  EXPECT_EQ(files(), 2U);
  put("profile-2-rank-1_7.json.tmp", "");
  states(What::end);
  EXPECT_EQ(files(), 2U) << "finished traces of the profile are removed";
  EXPECT_FALSE(finished_trace(folder_, 2, 0));
}

TEST_F(ProfileTrace, OnlyAFileOfThisUserIsRead) {
  put("trace", std::string(3 << 20, 'x'));
  EXPECT_EQ(read("trace"), std::string(3 << 20, 'x'));
  ASSERT_EQ(symlink("trace", (folder_ + "/link").c_str()), 0);
  EXPECT_NE(read("link").find("Too many levels"), std::string::npos);
  ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  EXPECT_NE(read("fifo").find("is not a file of this user"), std::string::npos);
  // A hole needs no room on the disk.
  put("large", "");
  ASSERT_EQ(truncate((folder_ + "/large").c_str(), kMostTrace + 1), 0);
  EXPECT_NE(read("large").find("is larger than 16 GiB"), std::string::npos);
}

TEST_F(ProfileTrace, AnErrorOfTheTakerEndsTheReading) {
  put("trace", std::string(3 << 20, 'x'));
  int pieces = 0;
  const Status done = read_trace(folder_ + "/trace", [&](std::string_view) -> Status {
    ++pieces;
    return fail(Errc::exhausted, "full");
  });
  EXPECT_FALSE(done);
  EXPECT_EQ(pieces, 1);
}

}  // namespace
}  // namespace lockstep::status
