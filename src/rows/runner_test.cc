// The runner of a guest without slots, with node 0 in another thread.
#include "rows/runner.h"

#include "io/listen.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace lockstep::rows {
namespace {

TEST(Runner, ASignalDoesNotChangeTheResultOfAGuestThatOnlyStays) {
  sigset_t before{};
  sigset_t handled{};
  sigemptyset(&handled);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    sigaddset(&handled, number);
  pthread_sigmask(SIG_BLOCK, &handled, &before);
  QueuePlace place{.host = "127.0.0.1", .secret = "s", .nodes = 2, .stays = true};
  place.port = io::open_listener("127.0.0.1", 0, 1).value().port;
  place.times.look = std::chrono::hours(1);
  std::thread zero([place] {
    io::Loop loop;
    const auto queue = RowQueue::open(loop, {}, place, {});
    ASSERT_TRUE(queue) << queue.error().message;
    (*queue)->leave([&](auto) { loop.stop(); });
    loop.run();
    kill(getpid(), SIGTERM);  // the guest has left
  });
  std::string folder = ::testing::TempDir() + "runnerXXXXXX";
  place.node = 1;
  const auto code = run_rows({.table = {}, .queue = place, .folder = mkdtemp(folder.data())});
  zero.join();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ(*code, 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::rows
