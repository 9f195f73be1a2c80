#include "hosts/slurm_host.h"

#include "base/error_testing.h"
#include "hosts/place.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace lockstep::hosts {
namespace {

class SlurmHostTest : public ::testing::Test {
 protected:
  Result<proc::ToolOutput> squeue(const HostEnding& answer) {
    const auto run = slurm_tools(login_, [&](io::Loop&, const CommandRequest& request) {
      asked_ = request;
      return Result<std::vector<HostEnding>>(std::vector<HostEnding>{answer});
    });
    return run({"squeue", "--me"});
  }
  Result<HostPlace> place(const std::string& where) const { return slurm_place(registry_, where); }

  const HostPlace login_{.name = "login", .target = {.host = "login"}};
  CommandRequest asked_;
  const Registry registry_{
      Registry::open(::testing::TempDir() + "slurm_host." + std::to_string(getpid())).value()};
};

TEST_F(SlurmHostTest, AProgramThereAnswersAsOneHere) {
  const auto said = squeue({.code = 1, .out = "7\n", .err = "slow\n"});
  ASSERT_TRUE(said);
  EXPECT_EQ(said->out, "7\n");
  EXPECT_EQ(said->err, "slow\n");
  EXPECT_EQ(said->exit.code, 1) << "a failing program is an answer";
  EXPECT_EQ(asked_.argv.back(), "--me");
  EXPECT_EQ(asked_.hosts.at(0).name, "login");
  EXPECT_EQ(squeue({.code = 137, .signal = 9})->exit.signal, 9);
}

TEST_F(SlurmHostTest, AHostWithoutSlurmIsNotASilentOne) {
  EXPECT_EQ(squeue({.code = 127}).error().message, "there is no squeue on login");
  EXPECT_EQ(code_of(squeue({.code = 127})), Errc::not_found);
  const auto silent = squeue({.code = 255, .error = "login: no route to host"});
  EXPECT_EQ(code_of(silent), Errc::unavailable);
  EXPECT_EQ(silent.error().message, "login: no route to host");
}

TEST_F(SlurmHostTest, APlaceOfSlurmIsOneHost) {
  for (const char* word : {"", "local"})
    EXPECT_TRUE(place(word)->here) << word;
  EXPECT_EQ(place("ann@login")->target.host, "login");
  (void)registry_.remove("gpus");
  ASSERT_TRUE(registry_.add(
      {.name = "gpus", .nodes = {{.target = {.host = "a"}}, {.target = {.host = "b"}}}}));
  const auto refused = place("gpus");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("(got 2 nodes)"), std::string::npos)
      << refused.error().message;
}

// The commands of this machine need no link.
TEST_F(SlurmHostTest, ToolsOfThisMachineRunHere) {
  HostPlace here = login_;
  here.here = true;
  const auto run = slurm_tools(here, [&](io::Loop&, const CommandRequest&) {
    ADD_FAILURE() << "asked over a link";
    return Result<std::vector<HostEnding>>(std::vector<HostEnding>());
  });
  EXPECT_EQ(run({"true"})->exit.code, 0);
}

}  // namespace
}  // namespace lockstep::hosts
