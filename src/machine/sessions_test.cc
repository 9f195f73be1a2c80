#include "machine/sessions.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>

namespace lockstep::machine {
namespace {

Process process(pid_t pid, pid_t parent, const char* name, std::vector<std::string> words) {
  return {pid, parent, name, std::move(words)};
}

// sshd with one client's connection, and the login shell that waits above the link.
std::vector<Process> a_client() {
  return {
      process(1, 0, "systemd", {"/sbin/init"}),
      process(10, 1, "sshd", {"sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups", ""}),
      process(20, 10, "sshd", {"sshd: ubuntu [priv]", ""}),
      process(21, 20, "sshd", {"sshd: ubuntu@notty", ""}),
      process(22, 21, "fish", {"fish", "-c", "exec ..."}),
      process(23, 22, "lockstep", {"/home/ubuntu/.cache/lockstep/bin/lockstep-1", "link"}),
      process(24, 23, "lockstep-agent", {"/home/ubuntu/.cache/lockstep/bin/lockstep-1", "link"})};
}

TEST(Sessions, AClientThatIsOnlyThereDoesNotWork) {
  auto all = a_client();
  EXPECT_EQ(working_sessions(all), 0);
  all.push_back(process(30, 24, "lockstep", {"lockstep", "host-lease", "status"}));
  all.push_back(process(31, 24, "lockstep", {"lockstep", "host-job", "follow"}));
  all.push_back(process(32, 31, "sh", {"sh"}));
  EXPECT_EQ(working_sessions(all), 1);  // the child of an asking command counts as work
}

TEST(Sessions, CommandsOfClientsAndPeopleWork) {
  auto all = a_client();
  all.push_back(process(30, 24, "python3", {"python3", "train.py"}));
  EXPECT_EQ(working_sessions(all), 1);
  all.push_back(process(40, 10, "sshd", {"sshd: ubuntu [priv]"}));
  all.push_back(process(41, 40, "sshd", {"sshd: ubuntu@pts/0"}));
  all.push_back(process(42, 41, "bash", {"-bash"}));
  EXPECT_EQ(working_sessions(all), 2);
  all.push_back(process(50, 24, "lockstep", {"lockstep", "host-setup"}));
  EXPECT_EQ(working_sessions(all), 3);
  all.push_back(process(60, 1, "cron", {"cron"}));  // not over ssh
  all.push_back(process(61, 60, "sh", {"sh"}));
  EXPECT_EQ(working_sessions(all), 3);
}

TEST(Sessions, TheListenerIsNoSession) {
  auto all = a_client();
  all.push_back(process(70, 1, "sshd", {"sshd: ann [priv]"}));  // its listener has died
  all.push_back(process(80, 1, "sshd", {"/usr/sbin/sshd", "-D", "-e"}));
  EXPECT_EQ(listening_sshds(all), (std::vector<pid_t>{10, 80}));
}

TEST(Sessions, AParentThatIsNotThereOrItselfEndsTheSearch) {
  EXPECT_EQ(working_sessions({process(5, 5, "sh", {"sh"}), process(7, 6, "sh", {"sh"}),
                              process(8, 9, "a", {}), process(9, 8, "b", {})}),
            0);
}

TEST(Sessions, ThisProcessIsSeen) {
  const auto all = all_processes();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Process& each) {
    return each.pid == getpid() && each.parent == getppid() && !each.words.empty();
  }));
}

}  // namespace
}  // namespace lockstep::machine
