#include "hosts/folded_hosts.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

namespace lockstep::hosts {
namespace {

class FoldedHostsTest : public ::testing::Test {
 protected:
  FoldedHostsTest()
      : pipe_(std::move(io::make_pipe().value())),
        output_(loop_, io::OwnStream::open(pipe_.write.get(), io::OwnStream::Way::write).value()),
        folded_(loop_, output_) {
    fcntl(pipe_.read.get(), F_SETFL, O_NONBLOCK);
  }

  void put(std::string_view prefix, std::string_view bytes) {
    folded_.put(prefix, bytes, [this](std::size_t printed) { printed_ += printed; });
  }
  std::string all() {
    folded_.finish();
    bool idle = false;
    output_.when_idle([&] { idle = true; });
    while (!idle)
      loop_.run_once();
    return seen();
  }
  std::string seen() {
    char bytes[4096];
    const ssize_t got = read(pipe_.read.get(), bytes, sizeof bytes);
    return {bytes, got > 0 ? static_cast<std::size_t>(got) : 0};
  }

  io::Loop loop_;
  io::Pipe pipe_;
  HostOutput output_;
  FoldedHosts folded_;
  std::size_t printed_ = 0;
};

TEST_F(FoldedHostsTest, RanksOfSeveralHostsSayALineOnce) {
  put("a: ", "[rank0]: loss 1\n[rank1]: lo");
  put("b: ", "[rank2]: loss 1\nwarm\n[rank3]: loss 1\n");
  put("a: ", "ss 1\n");
  EXPECT_EQ(all(), "[0,2] loss 1\nb: warm\n[1,3] loss 1\n");
  EXPECT_EQ(printed_, 27U + 37U + 5U);
}

TEST_F(FoldedHostsTest, WhatHasNoEndIsShownAtTheEnd) {
  put("a: ", "[rank0]: half");
  folded_.end("a: ");
  EXPECT_EQ(all(), "[0] half\n");
}

// Without credit for folded bytes, the host would wait forever.
TEST_F(FoldedHostsTest, TheHostGoesOnWhileALineHasNoEnd) {
  put("a: ", "[rank0]: half");
  while (printed_ == 0)
    loop_.run_once();
  EXPECT_EQ(printed_, 13U);
  EXPECT_EQ(seen(), "");
}

TEST_F(FoldedHostsTest, OfOneHostALineWithoutAnEndIsShown) {
  put("", "epoch 1: 10%");
  std::string text;
  while (text.empty()) {
    loop_.run_once();
    text = seen();
  }
  EXPECT_EQ(text, "epoch 1: 10%");
}

}  // namespace
}  // namespace lockstep::hosts
