#include "io/fd.h"
#include "io/getent.h"
#include "io/hosts_line.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace lockstep::io {
namespace {

std::string in_process(const std::string& line) {
  return name_plan(line, true).in_process;
}
bool asks(const std::string& line) {
  return name_plan(line, true).ask_getent;
}

TEST(HostsLine, IsTheLastOneWithoutItsComment) {
  EXPECT_EQ(hosts_line("passwd: files\nhosts:\t files dns # ours\n"), "files dns");
  EXPECT_EQ(hosts_line(" hosts : files\nhosts: dns"), "dns");
  EXPECT_EQ(hosts_line("# hosts: files\nhostsx: dns\nhosts files\n"), std::nullopt);
  EXPECT_EQ(hosts_line(""), std::nullopt);
  EXPECT_EQ(hosts_line("hosts:"), "");
}

TEST(NamePlan, FilesAndDnsStayInThisProcess) {
  for (const char* line : {"files dns", "dns files", "files", "files [NOTFOUND=return] dns",
                           "dns [!UNAVAIL=return] files", "files[NOTFOUND=return]dns"}) {
    EXPECT_EQ(in_process(line), line);
    EXPECT_FALSE(asks(line)) << line;
  }
}

TEST(NamePlan, WhateverElseIsAskedOfGetent) {
  for (const char* line :
       {"files myhostname resolve [!UNAVAIL=return] dns",
        "files mdns4_minimal [NOTFOUND=return] dns mymachines",
        "files mymachines resolve [!UNAVAIL=return] myhostname dns", "files dns myhostname"}) {
    EXPECT_EQ(in_process(line), "files") << line;
    EXPECT_TRUE(asks(line)) << line;
  }
  // Another service comes first, or /etc/hosts may have the last word.
  for (const char* line : {"mymachines resolve [!UNAVAIL=return] files myhostname dns",
                           "files [NOTFOUND=return] sss", "sss files"}) {
    EXPECT_EQ(in_process(line), "") << line;
    EXPECT_TRUE(asks(line)) << line;
  }
}

TEST(NamePlan, WhatCannotBeDoneAsWrittenIsDoneAsUsual) {
  for (const char* line : {"", "[NOTFOUND=return] files", "files [NOTFOUND=return dns"}) {
    EXPECT_EQ(in_process(line), "files dns") << line;
    EXPECT_FALSE(asks(line)) << line;
  }
  EXPECT_EQ(name_plan(std::nullopt, true).in_process, "files dns");
  const NamePlan without = name_plan("files resolve", false);
  EXPECT_EQ(without.in_process, "files dns");
  EXPECT_FALSE(without.ask_getent);
}

TEST(Getent, AnswersLineByLine) {
  const GetentAnswer two = parse_getent(
      "10.0.0.7        STREAM node7.example.org\n10.0.0.7        DGRAM  \n10.0.0.7        RAW    \n"
      "fe80::7%eth0    STREAM \nfe80::7%eth0    DGRAM  \n");
  EXPECT_EQ(two.addresses, (std::vector<std::string>{"10.0.0.7", "fe80::7%eth0"}));
  EXPECT_EQ(two.canonical_name, "node7.example.org");
  EXPECT_TRUE(parse_getent("").addresses.empty());
  EXPECT_TRUE(parse_getent("STREAM\n\n \n").addresses.empty());
}

TEST(Getent, IsNotGivenOptions) {
  EXPECT_TRUE(getent_takes("node7.example.org"));
  for (const std::string name : {"", "-s", "a b", "a\nb"})
    EXPECT_FALSE(getent_takes(name)) << name;
  EXPECT_FALSE(getent_takes(std::string(256, 'a')));
  EXPECT_FALSE(ask_getent("/bin/echo", "--help"));
}

class FakeGetent : public testing::Test {
 protected:
  Result<GetentAnswer> ask(const std::string& script) {
    const std::string path = testing::TempDir() + "getent." + std::to_string(getpid());
    EXPECT_TRUE(write_file(path, "#!/bin/sh\n" + script + "\n"));
    chmod(path.c_str(), 0755);
    auto answer = ask_getent(path, "node7");
    unlink(path.c_str());
    return answer;
  }
};

TEST_F(FakeGetent, ItsAnswerIsTaken) {
  const auto answer = ask("echo \"10.0.0.7 STREAM $1.$2.org\"");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->addresses, std::vector<std::string>{"10.0.0.7"});
  EXPECT_EQ(answer->canonical_name, "ahosts.node7.org");
}

TEST_F(FakeGetent, ItsWordsAreInTheError) {
  const auto answer = ask("echo 'no such \033 module' >&2; exit 2");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "'getent ahosts node7' knows no address: no such \\x1b module");
}

TEST_F(FakeGetent, OneThatDoesNotStopTalkingIsEnded) {
  EXPECT_FALSE(ask("exec yes"));
}

TEST_F(FakeGetent, OneThatCannotRunSaysSo) {
  const auto answer = ask_getent("/nowhere/getent", "node7");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "'getent ahosts node7' knows no address: it cannot be run");
}

}  // namespace
}  // namespace lockstep::io
