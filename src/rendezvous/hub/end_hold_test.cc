// What passes while the end of the job is being recorded.
#include "rendezvous/hub/end_hold.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::hub {
namespace {

std::string peers(const std::vector<Outbox::Output>& output) {
  std::string text;
  for (const Outbox::Output& one : output)
    text += std::to_string(one.to) + (one.close ? "x" : "") + " ";
  return text;
}

class EndHoldTest : public ::testing::Test {
 protected:
  // Sends node 1 the end and node 2 a beat, and closes the connection of node 3.
  std::string pass() {
    outbox.send(1, Finished{0});
    outbox.beat(2, Outbox::bytes_of(Beat{}));
    outbox.close(3);
    return peers(hold.let_through(outbox.take()));
  }
  Outbox outbox;
  EndHold hold;
};

TEST_F(EndHoldTest, NobodyHearsOfAnEndThatIsNotRecorded) {
  EXPECT_EQ(pass(), "1 2 3x ");
  hold.begin();
  EXPECT_EQ(pass(), "2 3x ");
  hold.release();
  EXPECT_EQ(pass(), "1 1 2 3x ");
}

TEST_F(EndHoldTest, WhatWasHeldIsForgottenIfAnotherHubDecides) {
  EXPECT_FALSE(hold.drop());
  hold.begin();
  pass();
  EXPECT_TRUE(hold.drop());
  EXPECT_EQ(pass(), "1 2 3x ");
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
