// Carries bytes between pipes and one end of a pair of sockets. The test has the other end.
#include "remote/carry.h"

#include "io/loop_testing.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

namespace lockstep::remote {
namespace {

class CarryTest : public ::testing::Test {
 protected:
  CarryTest() {
    signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    far_ = io::Fd(ends[0]);
    carry_ =
        std::move(Carry::start(loop_, in_.read.get(), out_.write.get(), io::Fd(ends[1]), [this] {
                    ended_ = true;
                  }).value());
    EXPECT_TRUE(io::set_nonblocking(out_.read.get()));
    EXPECT_TRUE(io::set_nonblocking(in_.write.get()));
  }
  // Adds what there is now. Returns false at the end of the bytes.
  static bool read_some(int fd, std::string& text) {
    std::array<char, 65536> bytes;
    const ssize_t got = read(fd, bytes.data(), bytes.size());
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
    return got != 0;
  }
  // Writes without an end until no byte moves any more. Returns how many were taken.
  std::size_t fill(int fd) {
    const std::string bytes(65536, 'x');
    std::size_t taken = 0;
    // A stalled turn means no more than that nothing was ready: several in a row are the end.
    for (int stalled = 0; stalled < 50; ++stalled) {
      ssize_t put = 0;
      while ((put = write(fd, bytes.data(), bytes.size())) > 0) {
        taken += static_cast<std::size_t>(put);
        stalled = 0;
      }
      loop_.run_once();
    }
    return taken;
  }
  template <class Fact>
  void until(Fact fact) {
    ASSERT_TRUE(io::run_until(loop_, fact));
  }

  io::Loop loop_;
  io::Pipe in_ = std::move(io::make_pipe().value());
  io::Pipe out_ = std::move(io::make_pipe().value());
  io::Fd far_;
  std::unique_ptr<Carry> carry_;
  bool ended_ = false;
};

TEST_F(CarryTest, BytesGoBothWaysAndTheEndOfInputIsPassedOn) {
  EXPECT_EQ(write(in_.write.get(), "ask", 3), 3);
  in_.write.reset();
  std::string asked;
  until([&] { return !read_some(far_.get(), asked); });
  EXPECT_EQ(asked, "ask");
  EXPECT_FALSE(ended_) << "the answer is still awaited";
  EXPECT_EQ(write(far_.get(), "answer", 6), 6);
  far_.reset();
  until([&] { return ended_; });
  std::string answer;
  read_some(out_.read.get(), answer);
  EXPECT_EQ(answer, "answer");
}

TEST_F(CarryTest, TheEndComesBehindTheLastByteForASlowReader) {
  const std::size_t sent = fill(far_.get());
  EXPECT_GT(sent, 2UL << 20) << "more than a pipe holds";
  far_.reset();
  std::string got;
  until([&] {
    read_some(out_.read.get(), got);
    return ended_;
  });
  while (got.size() < sent && read_some(out_.read.get(), got)) {
  }
  EXPECT_EQ(got.size(), sent);
}

TEST_F(CarryTest, AReaderThatStandsStillStopsItsWriter) {
  EXPECT_LT(fill(far_.get()), 4UL << 20);
  EXPECT_LT(fill(in_.write.get()), 4UL << 20);
}

}  // namespace
}  // namespace lockstep::remote
