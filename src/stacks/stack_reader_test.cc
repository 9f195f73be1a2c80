#include "stacks/stack_reader.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::stacks {
namespace {

TEST(StackReader, AProcessThatIsNotPython) {
  const auto reader = StackReader::attach(getpid());
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().kind, Unreadable::not_python);
  EXPECT_EQ(reader.error().sentence, "the stacks of process " + std::to_string(getpid()) +
                                         " are not readable: it does not run CPython");
}

TEST(StackReader, AnEndedProcess) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  const auto zombie = StackReader::attach(child);
  ASSERT_FALSE(zombie);
  EXPECT_EQ(zombie.error().kind, Unreadable::gone);
  waitpid(child, nullptr, 0);
  const auto reaped = StackReader::attach(child);
  ASSERT_FALSE(reaped);
  EXPECT_EQ(reaped.error().kind, Unreadable::gone);
}

TEST(Reason, FollowsTheErrno) {
  EXPECT_EQ(reason_of_errno(7, ESRCH).kind, Unreadable::gone);
  EXPECT_EQ(reason_of_errno(7, ENOENT).kind, Unreadable::gone);
  EXPECT_EQ(reason_of_errno(7, EPERM).kind, Unreadable::denied);
  EXPECT_EQ(reason_of_errno(7, EACCES).kind, Unreadable::denied);
  EXPECT_EQ(reason_of_errno(7, ENOSYS).kind, Unreadable::no_call);
  EXPECT_EQ(reason_of_errno(7, EFAULT).kind, Unreadable::changed);
  for (const int error : {ESRCH, EPERM, ENOSYS, EFAULT})
    EXPECT_EQ(reason_of_errno(7, error).sentence.find("the stacks of process 7 are not readable: "),
              0U);
}

}  // namespace
}  // namespace lockstep::stacks
