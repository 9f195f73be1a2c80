#include "hosts/host_output.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

namespace lockstep::hosts {
namespace {

class HostOutputTest : public ::testing::Test {
 protected:
  HostOutputTest()
      : pipe_(std::move(io::make_pipe().value())),
        output_(loop_, io::OwnStream::open(pipe_.write.get(), io::OwnStream::Way::write).value()) {
    fcntl(pipe_.read.get(), F_SETFL, O_NONBLOCK);
  }

  void put(std::string_view prefix, std::string_view bytes) {
    output_.put(prefix, bytes, [this](std::size_t printed) { printed_ += printed; });
  }
  std::string printed_text() {
    bool idle = false;
    output_.when_idle([&] { idle = true; });
    while (!idle)
      loop_.run_once();
    char bytes[4096];
    const ssize_t got = ::read(pipe_.read.get(), bytes, sizeof bytes);
    return {bytes, got > 0 ? static_cast<std::size_t>(got) : 0};
  }

  io::Loop loop_;
  io::Pipe pipe_;
  HostOutput output_;
  std::size_t printed_ = 0;
};

TEST_F(HostOutputTest, OneHostIsPrintedAsItComes) {
  put("", "half a l");
  EXPECT_EQ(printed_text(), "half a l");
  EXPECT_EQ(printed_, 8U);
}

TEST_F(HostOutputTest, LinesOfSeveralHostsStayWhole) {
  put("a: ", "one ");
  put("b: ", "two\nthr");
  put("a: ", "line\n\n");
  EXPECT_EQ(printed_text(), "b: two\na: one line\na: \n");
  EXPECT_EQ(printed_, 4U + 7U + 6U);
  output_.end("b: ");
  output_.end("a: ");
  EXPECT_EQ(printed_text(), "b: thr\n");
}

TEST_F(HostOutputTest, ALineWithoutAnEndIsPrintedInPieces) {
  put("a: ", std::string(64UL << 10, 'x'));
  bool idle = false;
  output_.when_idle([&] { idle = true; });
  std::string all;
  char bytes[4096];
  while (!idle) {
    loop_.run_once();
    const ssize_t got = ::read(pipe_.read.get(), bytes, sizeof bytes);
    if (got > 0) all.append(bytes, static_cast<std::size_t>(got));
  }
  EXPECT_EQ(printed_, 64UL << 10);
  EXPECT_TRUE(all.starts_with("a: xxx"));
}

}  // namespace
}  // namespace lockstep::hosts
