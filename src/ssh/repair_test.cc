#include "ssh/repair.h"

#include "io/fd.h"
#include "proc/spawn.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace lockstep::ssh {
namespace {

class Repair : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep_repair_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& name) const { std::ofstream(folder_ + "/" + name) << "x"; }
  bool there(const std::string& name) const {
    return std::filesystem::exists(folder_ + "/" + name);
  }
  // Makes a socket, which listens as long as the result lives.
  io::Fd socket_at(const std::string& name) const {
    io::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ + "/" + name;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd.get(), 1), 0);
    return fd;
  }
  std::chrono::system_clock::time_point later_ =
      std::chrono::system_clock::now() + std::chrono::minutes(2);
  std::string folder_;
};

constexpr const char* kOwn = "lockstep-0.2-00ff";

TEST_F(Repair, OldBinariesAndPartsGoAndOursStays) {
  for (const char* name : {kOwn, "lockstep-0.1-aaaa", "lockstep-0.2-00ff.part12",
                           "lockstep-0.2-00ff.new12", "somebody-else"})
    put(name);
  EXPECT_TRUE(remove_old_binaries(folder_, kOwn, std::chrono::system_clock::now()).empty());
  const auto removed = remove_old_binaries(folder_, kOwn, later_);
  EXPECT_EQ(removed.size(), 3U);
  EXPECT_TRUE(there(kOwn) && there("somebody-else"));
  EXPECT_FALSE(there("lockstep-0.1-aaaa") || there("lockstep-0.2-00ff.part12"));
}

TEST_F(Repair, ABinaryThatRunsStays) {
  const std::string path = folder_ + "/lockstep-0.1-aaaa";
  std::filesystem::copy_file("/bin/sleep", path);
  proc::SpawnSpec spec;
  spec.executable = path;
  spec.argv = {"sleep", "1000"};
  auto child = proc::spawn(spec);
  ASSERT_TRUE(child);
  EXPECT_TRUE(remove_old_binaries(folder_, kOwn, later_).empty());
  child->signal_group(SIGKILL);
  while (!child->reap()) {
  }
  EXPECT_EQ(remove_old_binaries(folder_, kOwn, later_).size(), 1U);
}

TEST_F(Repair, AFreshBinaryTakesStaleOnesAway) {
  const std::string bin = folder_ + "/.cache/lockstep/bin";
  std::filesystem::create_directories(bin);
  folder_ = bin;
  const auto now = std::chrono::system_clock::now();
  const auto set_days_old = [&](const std::string& name, int days) {
    put(name);
    std::filesystem::last_write_time(
        bin + "/" + name,
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * days));
  };
  set_days_old("lockstep-0.1-aaaa", 31);
  set_days_old("lockstep-0.1-bbbb", 29);
  set_days_old(kOwn, 1);
  remove_stale_binaries(bin + "/" + kOwn, now);
  EXPECT_TRUE(there("lockstep-0.1-aaaa"));  // the own binary is older than a minute
  put(kOwn);
  std::filesystem::copy(bin, bin + "/../elsewhere");
  remove_stale_binaries(bin + "/../elsewhere/" + kOwn, now);
  EXPECT_TRUE(there("../elsewhere/lockstep-0.1-aaaa"));  // the folder of a build, not of pushes
  remove_stale_binaries(bin + "/" + kOwn, now);
  EXPECT_FALSE(there("lockstep-0.1-aaaa"));
  EXPECT_TRUE(there("lockstep-0.1-bbbb") && there(kOwn));
}

TEST_F(Repair, CompressedBinariesOfOtherVersionsGo) {
  for (const char* name :
       {"lockstep-0.2-00ff.gz", "lockstep-0.1-aaaa.gz", "lockstep-0.2-00ff.gz.x7y", "mine.gz"})
    put(name);
  EXPECT_EQ(remove_old_pushes(folder_, kOwn, later_).size(), 2U);
  EXPECT_TRUE(there("lockstep-0.2-00ff.gz") && there("mine.gz"));
}

TEST_F(Repair, SocketsThatNobodyServesGo) {
  const std::string dead = "00112233445566aa";
  const std::string locked = "11112233445566aa";
  const std::string alive = "22112233445566aa";
  const io::Fd serves = socket_at(alive);
  for (const std::string& name : {dead, dead + ".XXXXYYYYZZZZ0000", locked, std::string("other")})
    socket_at(name);
  const io::Fd lock(open((folder_ + "/" + locked + ".lock").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  EXPECT_EQ(remove_dead_sockets(folder_).size(), 2U);
  EXPECT_FALSE(there(dead) || there(dead + ".XXXXYYYYZZZZ0000"));
  EXPECT_TRUE(there(locked) && there(alive) && there("other"));
  EXPECT_TRUE(remove_dead_sockets(folder_ + "/nowhere").empty());
}

}  // namespace
}  // namespace lockstep::ssh
