#include "status/profile_ask.h"

#include "status/profile_trace.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>

namespace lockstep::status {
namespace {

// The kernel accepts connections for a stopped agent, and the agent does not answer.
TEST(ProfileAsk, AnAgentThatDoesNotAnswerIsNotLeftOut) {
  io::Loop loop;
  const std::string job = "late-" + std::to_string(getpid());
  const auto ask = [&] {
    return ask_about_profile({.job = job}, {.id = 7}, std::chrono::milliseconds(20));
  };
  EXPECT_TRUE(ask().empty()) << "no agent: the job has ended";
  auto socket = JobSocket::open(loop, {.pid = getpid(), .job = job, .mark = "a"}, {});
  ASSERT_TRUE(socket) << socket.error().message;
  const auto answers = ask();
  ASSERT_EQ(answers.size(), 1U);
  const auto says = read_profile_answer(answers[0]);
  ASSERT_TRUE(says) << says.error().message;
  EXPECT_TRUE(says->late);
  EXPECT_EQ(says->refusal, "an agent of the job does not answer");
  EXPECT_EQ(ask_agents({.job = job}, "/x", std::chrono::milliseconds(20)).size(), 0U);
}

}  // namespace
}  // namespace lockstep::status
