#include "job/enter_job.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::job {
namespace {

using Words = std::vector<std::string>;

TEST(EnterJob, ReadsItsOwnWords) {
  const EnterRequest request{
      .job = "1a2b3c4d", .folder = "", .named = {"A", "B"}, .command = {"ls", "", "--", "-l"}};
  const Words words = enter_words(request);
  EXPECT_EQ(words, (Words{"1a2b3c4d", "", "A,B", "ls", "", "--", "-l"}));
  const auto read = read_enter(words);
  ASSERT_TRUE(read);
  EXPECT_EQ(enter_words(*read), words);
  EXPECT_TRUE(read_enter({"pid-7", "data", "", "ls"})->named.empty());
}

TEST(EnterJob, RefusesWordsWithoutACommand) {
  for (const Words& words :
       {Words{}, Words{"1a2b3c4d"}, Words{"1a2b3c4d", "", ""}, Words{"", "", "", "ls"}})
    EXPECT_EQ(code_of(read_enter(words)), Errc::invalid_input);
}

TEST(EnterJob, TheEnvironmentIsTheAgentsWithoutSecrets) {
  using namespace std::string_view_literals;
  const auto agent = "PATH=/opt/bin\0HOME=/root\0LOCKSTEP_RDZV_TOKEN=s3cret\0A=theirs\0EMPTY=\0"sv;
  const Words own = {"PATH=/usr/bin", "A=given", "B=new", "AB=other"};
  EXPECT_EQ(environment_inside(agent, own, {"A", "B"}),
            (Words{"PATH=/opt/bin", "HOME=/root", "EMPTY=", "A=given", "B=new"}));
  EXPECT_TRUE(environment_inside("", own, {}).empty());
}

TEST(EnterJob, AJobThatIsNotHereIsUnavailable) {
  for (const char* job : {"00000000", "pid-0", "pid-x", "pid-99999999999"})
    EXPECT_EQ(enter_job({.job = job, .command = {"true"}}).code, Errc::unavailable) << job;
}

}  // namespace
}  // namespace lockstep::job
