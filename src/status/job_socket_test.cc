#include "status/job_socket.h"

#include "base/error_testing.h"
#include "io/unix_socket.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

namespace lockstep::status {
namespace {

class JobSocketOfAgent : public testing::Test {
 protected:
  std::unique_ptr<JobSocket> open(const JobSocketName& name) {
    http::Handlers handlers;
    handlers["/looks"] = [](const http::Request& request) {
      return http::Response{200, "application/json", "looks " + request.query};
    };
    handlers["/long"] = [](const http::Request&) {
      return http::Response{200, "text/plain", std::string(5UL << 20, 'x')};
    };
    auto socket = JobSocket::open(loop_, name, std::move(handlers));
    EXPECT_TRUE(socket) << socket.error().message;
    return socket ? std::move(*socket) : nullptr;
  }

  // Asks on a thread of its own, as another process would, while the loop answers.
  void while_answering(const std::function<void()>& act) {
    std::atomic<bool> over = false;
    std::thread asker([&] {
      act();
      over = true;
    });
    while (!over) {
      loop_.run_once();
      usleep(200);
    }
    asker.join();
  }
  Result<std::string> ask(const JobSocketName& name, std::string_view target) {
    Result<std::string> answer;
    while_answering([&] { answer = ask_agent(name, target, std::chrono::seconds(10)); });
    return answer;
  }

  io::Loop loop_;
};

TEST(JobSocketNames, AreReadBack) {
  for (const JobSocketName& name :
       {JobSocketName{.pid = 12, .job = ""}, JobSocketName{.pid = 4711, .job = "train-7_b"},
        JobSocketName{.pid = 4711, .job = "train", .mark = "9f3a"},
        JobSocketName{.pid = 4711, .job = "", .mark = "9f3a"}}) {
    const auto again = parse_socket_name(print_socket_name(name));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->pid, name.pid);
    EXPECT_EQ(again->job, name.job);
    EXPECT_EQ(again->mark, name.mark);
  }
  EXPECT_EQ(print_socket_name({.pid = 3, .job = "../x"}), "3");
  for (const char* wrong :
       {"", ".", "x", "-1", "0", "1.", "1.a/b", "1.a.b", "1-.a", "1-/", "99999999999"})
    EXPECT_FALSE(parse_socket_name(wrong)) << wrong;
}

// No other run of this test has the mark.
JobSocketName own_name(const std::string& job) {
  return {.pid = 7, .job = job, .mark = "test" + std::to_string(getpid())};
}

TEST_F(JobSocketOfAgent, AnswersThisUser) {
  const JobSocketName name = own_name("train");
  const auto socket = open(name);
  EXPECT_EQ(ask(name, "/looks?rank=3").value_or(""), "looks rank=3");
  EXPECT_EQ(code_of(ask(name, "/other")), Errc::not_found);
  EXPECT_EQ(code_of(ask(name, "/long")), Errc::corrupt);
}

TEST_F(JobSocketOfAgent, OnlyAgentsWithTheVariableAreAsked) {
  const std::string job = "rows-" + std::to_string(getpid());
  const auto socket = open({.pid = getpid(), .job = job});
  const auto answers = [&](const std::string& variable) {
    std::size_t count = 0;
    while_answering([&] {
      count = ask_agents({.job = job}, "/looks", std::chrono::seconds(10), {}, variable).size();
    });
    return count;
  };
  EXPECT_EQ(answers(""), 1U);
  EXPECT_EQ(answers(std::string("PATH=") + getenv("PATH")), 1U);
  EXPECT_EQ(answers("LOCKSTEP_SWEEP_ROW=12"), 0U);
}

TEST(AgentsWords, MayNameARow) {
  EXPECT_EQ(read_agents_word("abcd").job, "abcd");
  EXPECT_EQ(read_agents_word("abcd").variable, "");
  EXPECT_EQ(read_agents_word("abcd[12]").job, "abcd");
  EXPECT_EQ(read_agents_word("abcd[12]").variable, "LOCKSTEP_SWEEP_ROW=12");
}

// Asks as another user. Returns the exit code of the asking process: 0 if the agent said nothing.
int ask_as_another_user(io::Loop& loop, const std::string& address) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kAnother = 4321;
    if (setuid(kAnother) != 0) _exit(2);
    const auto fd = io::connect_unix(address);
    if (!fd) _exit(3);
    constexpr std::string_view kAsk = "GET /looks HTTP/1.1\r\nHost: agent\r\n\r\n";
    (void)send(fd->get(), kAsk.data(), kAsk.size(), MSG_NOSIGNAL);
    char byte = 0;
    _exit(recv(fd->get(), &byte, 1, 0) > 0 ? 1 : 0);
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    loop.run_once();
    usleep(200);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(JobSocketOfAgent, AnswersNoOtherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const JobSocketName name = own_name("train");
  const auto socket = open(name);
  EXPECT_EQ(ask_as_another_user(loop_, "@lockstep/0/" + print_socket_name(name)), 0);
}

TEST_F(JobSocketOfAgent, IsGoneWithTheAgent) {
  const JobSocketName name = own_name("");
  open(name).reset();
  EXPECT_EQ(code_of(ask(name, "/looks")), Errc::unavailable);
}

TEST_F(JobSocketOfAgent, AnAgentThatDoesNotAnswerIsATimeout) {
  const JobSocketName name = own_name("");
  const auto socket = open(name);
  // Nobody runs the loop.
  EXPECT_EQ(code_of(ask_agent(name, "/looks", std::chrono::milliseconds(50))), Errc::timeout);
}

TEST_F(JobSocketOfAgent, ManySilentOnesHoldNobodyUp) {
  std::vector<std::unique_ptr<JobSocket>> sockets;
  sockets.reserve(40);
  const std::string job = "silent-" + std::to_string(getpid());
  for (int i = 0; i < 40; ++i)
    sockets.push_back(open({.pid = getpid(), .job = job, .mark = "m" + std::to_string(i)}));
  const auto begin = io::Clock::now();
  EXPECT_TRUE(ask_agents({.job = job}, "/looks", std::chrono::milliseconds(50)).empty());
  EXPECT_LT(io::Clock::now() - begin, std::chrono::seconds(1));  // of 2 s
}

TEST_F(JobSocketOfAgent, AnAgentIsFoundWhileItAccepts) {
  const std::string job = "enter-" + std::to_string(getpid());
  auto socket = open({.pid = getpid(), .job = job});
  std::vector<AgentProcess> held;
  auto found = find_agent({.job = job});
  for (; found && *found && held.size() < 100; found = find_agent({.job = job}))
    held.push_back(std::move(**found));
  ASSERT_FALSE(held.empty());
  EXPECT_EQ(code_of(found), Errc::timeout) << "nobody runs the loop";
  EXPECT_EQ(held.front().pid, getpid());
  EXPECT_TRUE(held.front().lives());
  socket.reset();
  EXPECT_FALSE(held.front().lives()) << "the pid may be another's now";
  EXPECT_FALSE(find_agent({.job = job}).value());
}

TEST(JobSockets, AreFoundByTheirNames) {
  const auto found = sockets_in(
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0: 00000002 00000000 00010000 0001 01 21 /run/dbus/socket\n"
      "0: 00000002 00000000 00010000 0001 01 22 @lockstep/5/4711-ab.train\n"
      "0: 00000003 00000000 00000000 0001 03 23 @lockstep/5/4711-ab.train\n"
      "0: 00000002 00000000 00010000 0001 01 24 @lockstep/6/4712-ab\n"
      "0: 00000002 00000000 00010000 0001 01 25 @lockstep/5/x\n"
      "0: 00000002 00000000 00010000 0001 01 26 @lockstep/5/4713-cd\n"
      "@lockstep/5/1 00010000",
      5);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(print_socket_name(found[0]), "4711-ab.train");
  EXPECT_EQ(print_socket_name(found[1]), "4713-cd");
}

}  // namespace
}  // namespace lockstep::status
