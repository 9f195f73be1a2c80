#include "agent/profile_folder.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace lockstep::agent {
namespace {

namespace fs = std::filesystem;

class ProfileFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(place_.data()), nullptr);
    place_ += "/x";
    fs::create_directory(place_);
  }
  void TearDown() override { fs::remove_all(fs::path(place_).parent_path()); }

  std::string make(const std::string& name) {
    fs::create_directory(place_ + "/" + name);
    return place_ + "/" + name;
  }
  // Returns a socket in a new folder, as an agent has one.
  io::Fd agent(const std::string& folder) {
    io::Fd made(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    const std::size_t size = profile_address(make(folder) + "/dynolog", address);
    EXPECT_EQ(
        bind(made.get(), reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size)),
        0);
    return made;
  }
  bool exists(const std::string& name) const {
    return fs::symlink_status(place_ + "/" + name).type() != fs::file_type::not_found;
  }

  std::string place_ = "/tmp/pf_XXXXXX";
};

TEST_F(ProfileFolder, OnlyFoldersOfDeadAgentsAreSwept) {
  const io::Fd alive = agent("lockstep-profile-alive");
  agent("lockstep-profile-dead").reset();
  fs::create_directories(place_ + "/lockstep-profile-dead/sub/folder");
  make("lockstep-profile-new");  // its agent has not called bind() yet
  agent("other").reset();
  fs::create_directory_symlink(place_ + "/other", place_ + "/lockstep-profile-link");
  sweep_profile_folders(place_);
  for (const char* kept :
       {"lockstep-profile-alive", "lockstep-profile-new", "other", "lockstep-profile-link"})
    EXPECT_TRUE(exists(kept)) << kept;
  EXPECT_FALSE(exists("lockstep-profile-dead"));
  EXPECT_TRUE(exists("other/dynolog"));
}

TEST_F(ProfileFolder, AFolderIsRemovedWithItsTraces) {
  const io::Fd alive = agent("lockstep-profile-alive");
  const std::string folder = place_ + "/lockstep-profile-alive";
  fs::create_directory(folder + "/profile-1-rank-0_7.json.tmp");
  remove_profile_folder(folder);
  EXPECT_FALSE(exists("lockstep-profile-alive"));
}

}  // namespace
}  // namespace lockstep::agent
