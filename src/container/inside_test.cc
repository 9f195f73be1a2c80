#include "container/inside.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <thread>

namespace lockstep::container {
namespace {

class RecordedCode : public ::testing::Test {
 protected:
  RecordedCode() { EXPECT_TRUE(io::set_nonblocking(tether_.read.get())); }
  void write_bytes(std::string_view bytes) const {
    EXPECT_EQ(write(tether_.write.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }

  io::Pipe tether_ = io::make_pipe().value();
};

TEST_F(RecordedCode, StandsBehindSignalsThatWereNotPassedOn) {
  EXPECT_EQ(recorded_code(tether_.read.get()), std::nullopt);
  write_bytes({"\x0f\x02", 2});
  EXPECT_EQ(recorded_code(tether_.read.get()), std::nullopt);
  write_bytes({"\x0f\x00\x8f", 3});
  EXPECT_EQ(recorded_code(tether_.read.get()), 143);
  write_bytes({"\x00", 1});
  EXPECT_EQ(recorded_code(tether_.read.get()), std::nullopt) << "killed while it wrote";
}

TEST_F(RecordedCode, IsNotWaitedForWhileAProcessGoesOnWriting) {
  constexpr int kMost = 200;  // pipes full of bytes, so that a failure is no endless test
  std::atomic<bool> over = false;
  signal(SIGPIPE, SIG_IGN);
  const std::string much(64UL << 10, '\x0f');
  write_bytes(much);
  int written = 0;
  std::thread writer([&] {
    while (!over && written < kMost && write(tether_.write.get(), much.data(), much.size()) > 0)
      ++written;
  });
  EXPECT_EQ(recorded_code(tether_.read.get()), std::nullopt);
  over = true;
  tether_.read.reset();
  writer.join();
  EXPECT_LT(written, kMost);
}

}  // namespace
}  // namespace lockstep::container
