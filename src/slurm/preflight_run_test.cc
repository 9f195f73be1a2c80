#include "slurm/preflight_run.h"

#include "io/dialer.h"
#include "io/fd.h"
#include "io/listen.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

namespace lockstep::slurm {
namespace {

// Returns a free port.
int free_port() {
  const auto listener = io::open_listener("127.0.0.1", 0, 1);
  return listener ? listener->port : 0;
}

int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

class PreflightRun : public ::testing::Test {
 protected:
  PreflightRun() : folder_(::testing::TempDir() + "/preflight-XXXXXX") {
    LOCKSTEP_CHECK(mkdtemp(folder_.data()) != nullptr);
  }
  ~PreflightRun() override {
    for (const pid_t each : children_) {
      kill(each, SIGKILL);
      waitpid(each, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  PreflightSettings settings(int self) const {
    return {.nodes = {"127.0.0.1", "127.0.0.1"},
            .self = self,
            .port = port_,
            .token = "token",
            .job = "1.0",
            .file = folder_ + "/decision",
            .size = {},
            .look = [] { return NodeFacts(); },
            .ask = {}};
  }
  // Runs in a child process, which the test ends.
  void begin(const std::function<void()>& run) {
    const pid_t child = fork();
    LOCKSTEP_CHECK(child >= 0);
    if (child == 0) {
      run();
      _exit(0);
    }
    children_.push_back(child);
  }

  std::string folder_;
  const int port_ = free_port();
  std::vector<pid_t> children_;
};

// A foreign host can open any number of connections.
TEST_F(PreflightRun, StrangersTakeNoPlaceFromANode) {
  constexpr rlim_t kFiles = 100;
  constexpr int kStrangers = 400;
  int full[2];
  ASSERT_EQ(pipe(full), 0);
  begin([&] {
    while (connect_to(port_) < 0)
      usleep(1000);
    for (int i = 0; i < kStrangers; ++i)
      connect_to(port_);
    (void)!write(full[1], "x", 1);
    pause();
  });
  begin([&] {
    char byte = 0;
    (void)!::read(full[0], &byte, 1);
    io::Loop loop;
    Preflight(loop, settings(1)).run();
  });
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit less{kFiles, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &less), 0);
  io::Loop loop;
  Preflight first(loop, settings(0));
  const auto decision = first.run();
  setrlimit(RLIMIT_NOFILE, &before);
  close(full[0]);
  close(full[1]);
  ASSERT_TRUE(decision);
  EXPECT_TRUE(first.decided_here());
  for (const std::string& line : decision->lines)
    EXPECT_EQ(line.find("no report came"), std::string::npos) << line;
}

// The node's own checks may take as long as the import of PyTorch.
TEST_F(PreflightRun, PythonWorksWhileTheNodeIsLookedAt) {
  const std::string python = folder_ + "/python";
  const std::string began = folder_ + "/began";
  ASSERT_TRUE(io::write_file(python, "#!/bin/sh\n: >" + began + "\n"));
  ASSERT_EQ(chmod(python.c_str(), 0755), 0);
  PreflightSettings alone = settings(0);
  alone.nodes.resize(1);
  alone.ask.python = python;
  bool works = false;
  alone.look = [&] {
    const auto limit = io::Clock::now() + std::chrono::seconds(20);
    while (!works && io::Clock::now() < limit)
      works = access(began.c_str(), F_OK) == 0;
    return NodeFacts();
  };
  io::Loop loop;
  EXPECT_TRUE(Preflight(loop, alone).run());
  EXPECT_TRUE(works);
}

}  // namespace
}  // namespace lockstep::slurm
