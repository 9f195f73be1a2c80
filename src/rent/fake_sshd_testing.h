// For tests of contact with machines: a port on 127.0.0.1 that greets, and an ssh in PATH that
// fails with words of the test's choice.
#pragma once

#include "io/fd.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

namespace lockstep::rent::testing {

// Accepts connections on a thread, greets each one, and closes it.
class Greeter {
 public:
  explicit Greeter(std::string greeting) : greeting_(std::move(greeting)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    auto* at = reinterpret_cast<sockaddr*>(&place);
    EXPECT_EQ(bind(listener_.get(), at, size), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    EXPECT_EQ(getsockname(listener_.get(), at, &size), 0);
    port_ = ntohs(place.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  Greeter(const Greeter&) = delete;
  Greeter& operator=(const Greeter&) = delete;
  ~Greeter() {
    (void)eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  int port() const { return port_; }

 private:
  void serve() {
    pollfd both[2] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    while (poll(both, 2, -1) > 0 && both[1].revents == 0) {
      const io::Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      (void)!write(client.get(), greeting_.data(), greeting_.size());
    }
  }

  std::string greeting_;
  io::Fd listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  io::Fd stop_{eventfd(0, EFD_CLOEXEC)};
  int port_ = 0;
  std::thread thread_;
};

// Returns a port of 127.0.0.1 at which nothing listens.
inline int closed_port() {
  return Greeter("").port();
}

// Puts an ssh into PATH that prints `words` to stderr and fails.
class FailingSsh {
 public:
  FailingSsh(std::string folder, const std::string& words) : folder_(std::move(folder) + "/bin") {
    std::filesystem::create_directories(folder_);
    std::filesystem::create_directories(folder_ + "/run");
    std::ofstream(folder_ + "/words") << words;
    std::ofstream(folder_ + "/ssh")
        << "#!/bin/sh\nexec >&2\ncat '" << folder_ << "/words'\nexit 255\n";
    std::filesystem::permissions(folder_ + "/ssh", std::filesystem::perms::owner_all);
    setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
    // Connections of other tests must not be shared.
    setenv("XDG_RUNTIME_DIR", (folder_ + "/run").c_str(), 1);
  }
  FailingSsh(const FailingSsh&) = delete;
  FailingSsh& operator=(const FailingSsh&) = delete;
  ~FailingSsh() {
    setenv("PATH", path_.c_str(), 1);
    unsetenv("XDG_RUNTIME_DIR");
  }

 private:
  std::string folder_;
  std::string path_ = std::getenv("PATH");
};

inline constexpr const char* kWrongHostWords = "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\n";

}  // namespace lockstep::rent::testing
