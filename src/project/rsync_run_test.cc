// Runs transfers with a shell script in place of rsync, and a socket in place of the ssh master.
#include "project/rsync_run.h"

#include "proc/signals.h"
#include "ssh/control_place.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace lockstep::project {
namespace {

namespace fs = std::filesystem;

class RsyncRunTest : public ::testing::Test {
 protected:
  RsyncRunTest() {
    std::string folder = "/tmp/rsync-run-XXXXXX";  // short, because it holds a socket
    top_ = mkdtemp(folder.data());
    setenv("PATH", (top_.string() + ":" + path_).c_str(), 1);
    setenv("XDG_RUNTIME_DIR", top_.c_str(), 1);
    proc::block(proc::handled_signals());
  }
  ~RsyncRunTest() override {
    setenv("PATH", path_.c_str(), 1);
    unsetenv("XDG_RUNTIME_DIR");
    fs::remove_all(top_);
  }

  // Makes the script that stands in for rsync. Each start of the script adds a line to `runs`.
  void make_rsync(const std::string& text) const {
    std::ofstream(top_ / "rsync") << "#!/bin/sh\necho run >>" << (top_ / "runs").string() << "\n"
                                  << text;
    fs::permissions(top_ / "rsync", fs::perms::owner_all);
  }
  std::string runs() const {
    std::ostringstream text;
    text << std::ifstream(top_ / "runs").rdbuf();
    return text.str();
  }
  // Listens where the ssh master of the host would, so that rsync is started with ssh first.
  void listen_as_master() {
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string path = ssh::control_socket(transfers_[0].place.target, "").value();
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    master_ = io::Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(master_.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    ASSERT_EQ(listen(master_.get(), 8), 0);
  }

  const std::string path_ = getenv("PATH");
  fs::path top_;
  io::Fd master_;
  io::Loop loop_;
  std::vector<Transfer> transfers_ = {
      {.place = {.name = "gpus-0", .target = {.host = "a"}}, .answer = {}, .needed = {}}};
};

TEST_F(RsyncRunTest, AnRsyncThatFailsOverSshIsStartedAgainOverOurLink) {
  listen_as_master();
  make_rsync("case \"$*\" in *rsync-shell*) exit 0; esac; exit 255");
  const auto ends = run_transfers(loop_, top_, transfers_, {});
  ASSERT_TRUE(ends) << ends.error().message;
  EXPECT_EQ((*ends)[0].error, "");
  EXPECT_EQ(runs(), "run\nrun\n");
}

TEST_F(RsyncRunTest, NoRsyncIsStartedAgainAfterASignal) {
  listen_as_master();
  make_rsync("echo 0; exit 255");
  // Send the signal once the process has ended, but before the loop sees that end. The loop then
  // handles the end, the signal and the second start in this order.
  bool sent = false;
  const auto tell = [&](std::size_t, std::uint64_t) {
    siginfo_t info{};
    if (std::exchange(sent, true)) return;
    EXPECT_EQ(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    raise(SIGTERM);
  };
  const auto ends = run_transfers(loop_, top_, transfers_, tell);
  ASSERT_TRUE(ends) << ends.error().message;
  EXPECT_EQ((*ends)[0].signal, SIGTERM);
  EXPECT_EQ((*ends)[0].error, "gpus-0: the transfer was stopped; the next sync goes on");
  EXPECT_EQ(runs(), "run\n");
}

}  // namespace
}  // namespace lockstep::project
