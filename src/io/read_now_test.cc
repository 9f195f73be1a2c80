#include "io/read_now.h"

#include <gtest/gtest.h>

namespace lockstep::io {
namespace {

TEST(ReadNow, TakesAllThatHasComeAndWaitsForNoMore) {
  Pipe pipe = make_pipe().value();
  ASSERT_TRUE(set_nonblocking(pipe.read.get()));
  const std::string much(10'000, 'x');
  ASSERT_TRUE(write_all(pipe.write.get(), much, "the pipe"));
  std::string text = "before ";
  read_now(pipe.read, text, 1UL << 20);
  EXPECT_EQ(text, "before " + much);
  ASSERT_TRUE(write_all(pipe.write.get(), much, "the pipe"));
  read_now(pipe.read, text, text.size() + 1);
  EXPECT_LT(text.size(), 7 + 2 * much.size()) << "no more than a piece behind the limit";
  pipe.write.reset();
  read_now(pipe.read, text, 1UL << 20);
  EXPECT_EQ(text, "before " + much + much);
}

}  // namespace
}  // namespace lockstep::io
