// Shared by the tests of Capture: a console of two pipes, and a directory for files.
#pragma once

#include "io/fd.h"
#include "logs/capture.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace lockstep::logs {
using std::chrono::milliseconds;
inline constexpr std::string_view kPrefix = "[default0]:";

inline void put(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(fd, bytes.data(), bytes.size());
    ASSERT_GT(size, 0);
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

// Everything written to one end of the console, read by a thread.
class Collector {
 public:
  explicit Collector(int fd, milliseconds pause = milliseconds(0))
      : thread_([this, fd, pause] {
          char bytes[65536];
          ssize_t got = 0;
          while ((got = read(fd, bytes, sizeof bytes)) > 0) {
            text_.append(bytes, static_cast<std::size_t>(got));
            std::this_thread::sleep_for(pause);
          }
        }) {}
  // Returns the text. Call after the other end was closed.
  std::string text() {
    thread_.join();
    return text_;
  }

 private:
  std::string text_;
  std::thread thread_;
};

class CaptureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    char name[] = "/tmp/capture_test_XXXXXX";
    dir_ = mkdtemp(name);
    out_ = *io::make_pipe();
    err_ = *io::make_pipe();
    console_ = std::make_unique<Console>(
        loop_, Console::Options{out_.write.get(), err_.write.get(), 1 << 20, 256 << 10, true});
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::unique_ptr<Capture> open(CapturePlan plan) {
    auto capture = Capture::open(loop_, *console_, std::move(plan));
    EXPECT_TRUE(capture) << capture.error().message;
    return std::move(*capture);
  }
  CapturePlan tee_plan(std::string file = {}) const {
    CapturePlan plan;
    plan.prefix = kPrefix;
    plan.out.route = Route::tee;
    plan.out.path = file.empty() ? dir_ + "/stdout.log" : std::move(file);
    return plan;
  }
  bool turn_until(const std::function<bool()>& done, int ms = 10000) {
    const auto deadline = io::Clock::now() + milliseconds(ms);
    while (!done()) {
      if (io::Clock::now() > deadline) return false;
      if (!loop_.run_once()) std::this_thread::yield();
    }
    return true;
  }
  static std::string there(int fd) {
    int size = 0;
    ioctl(fd, FIONREAD, &size);
    std::string bytes(static_cast<std::size_t>(size), '\0');
    const ssize_t got = size > 0 ? read(fd, bytes.data(), bytes.size()) : 0;
    EXPECT_EQ(got, size);
    return bytes;
  }
  std::string logged(const char* name = "stdout.log") const {
    return io::read_file(dir_ + "/" + name, 1 << 30).value_or("none");
  }

  io::Loop loop_;
  std::string dir_;
  io::Pipe out_;
  io::Pipe err_;
  std::unique_ptr<Console> console_;
};

}  // namespace lockstep::logs
