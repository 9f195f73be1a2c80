#include "stacks/thread_ids.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace lockstep::stacks {
namespace {

using Ids = std::vector<pid_t>;

TEST(IdsInStatus, OneForEachNamespace) {
  EXPECT_EQ(ids_in_status("Name:\tx\nNSpid:\t4711\t12\t1\nNSpgid:\t1\n"), (Ids{4711, 12, 1}));
  EXPECT_EQ(ids_in_status("Name:\tx\nNSpid:\t4711\n"), Ids{4711});
  EXPECT_EQ(ids_in_status("Name:\tNSpid:\t1\n"), Ids{});
  EXPECT_EQ(ids_in_status(""), Ids{});
}

TEST(ThreadIds, AreTheSameInTheSameNamespace) {
  ThreadIds ids(getpid());
  EXPECT_EQ(ids.inner_pid(), getpid());
  EXPECT_EQ(ids.outer(getpid()), getpid());
  EXPECT_EQ(ids.outer(77), 77);
  EXPECT_EQ(ids.outer(0), 0);
}

}  // namespace
}  // namespace lockstep::stacks
