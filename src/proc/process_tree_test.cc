#include "proc/process_tree.h"

#include "proc/leftovers.h"
#include "proc/pid_namespace.h"
#include "proc/spawn.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

namespace lockstep::proc {
namespace {

// Starts a process with children, including a daemon made by a double fork. Standard output is
// closed when all have started.
void start_tree() {
  auto pipe = io::make_pipe();
  ASSERT_TRUE(pipe);
  SpawnSpec spec;
  spec.executable = "/bin/sh";
  spec.argv = {"sh", "-c",
               "trap '' TERM; (setsid sh -c 'sleep 1000 >/dev/null & echo up' &); sleep 1000 "
               ">/dev/null & exec >/dev/null; wait"};
  spec.env = {"PATH=/usr/bin:/bin",
              std::string(kAgentTag) + "=1.999999999999." + pid_namespace_id() + ".tree.test"};
  spec.stdout_fd = pipe->write.get();
  auto child = spawn(spec);
  ASSERT_TRUE(child);
  pipe->write.reset();
  char bytes[16];
  while (read(pipe->read.get(), bytes, sizeof bytes) > 0) {
  }
}

TEST(ProcessTree, SweepEndsDaemonsToo) {
  become_subreaper();
  start_tree();
  EXPECT_GE(descendants().size(), 3U);
  const Sweep sweep = sweep_descendants({}, std::chrono::seconds(10));
  EXPECT_GE(sweep.killed, 3);
  EXPECT_TRUE(sweep.unkillable.empty());
  EXPECT_TRUE(descendants().empty());
}

TEST(ProcessTree, LeftoversAreThoseOfTheSameJobWhoseAgentIsGone) {
  become_subreaper();
  start_tree();
  for (const char* other : {"another-job", "tree", "test", ""})
    EXPECT_TRUE(kill_leftovers(other).empty()) << other;
  EXPECT_GE(kill_leftovers("tree.test").size(), 3U);
  sweep_descendants({}, std::chrono::seconds(10));
}

TEST(ProcessTree, CommandOf) {
  EXPECT_NE(command_of(getpid()).find("proc_test"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::proc
