#include "io/loop.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

namespace lockstep::io {
namespace {
using std::chrono::milliseconds;

TEST(Loop, TimersFireInOrderAndCancel) {
  Loop loop;
  Timer a(loop);
  Timer b(loop);
  Timer c(loop);
  std::string order;
  b.start(milliseconds(2), [&] { order += "b"; });
  a.start(milliseconds(0), [&] { order += "a"; });
  c.start(milliseconds(1), [&] { order += "c"; });
  c.cancel();
  loop.run();
  EXPECT_EQ(order, "ab");
}

TEST(Loop, ATimerMayDestroyItselfOrStartAgain) {
  Loop loop;
  auto timer = std::make_unique<Timer>(loop);
  int fired = 0;
  timer->start(milliseconds(0), [&] {
    ++fired;
    timer->start(milliseconds(0), [&] {
      ++fired;
      timer.reset();
    });
  });
  loop.run();
  EXPECT_EQ(fired, 2);
}

TEST(Loop, WatchSeesDataAndHangup) {
  Loop loop;
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  std::string got;
  auto watch = std::make_unique<Watch>(loop, pipe->read.get());
  watch->start(kReadable, [&](int) {
    char bytes[16];
    const ssize_t n = read(pipe->read.get(), bytes, sizeof bytes);
    if (n > 0) {
      got.append(bytes, static_cast<std::size_t>(n));
      pipe->write.reset();
      return;
    }
    watch.reset();
  });
  ASSERT_EQ(write(pipe->write.get(), "hello", 5), 5);
  loop.run();
  EXPECT_EQ(got, "hello");
}

TEST(Loop, PostComesFromOtherThreads) {
  Loop loop;
  Timer keep(loop);
  keep.start(std::chrono::seconds(30), [] {});
  int sum = 0;
  std::thread poster([&] {
    for (int i = 1; i <= 100; ++i)
      loop.post([&sum, i] { sum += i; });
    loop.post([&] { keep.cancel(); });
  });
  loop.run();
  poster.join();
  EXPECT_EQ(sum, 5050);
}

}  // namespace
}  // namespace lockstep::io
