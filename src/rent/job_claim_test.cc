#include "rent/job_claim.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

namespace lockstep::rent {
namespace {

struct JobClaim : ::testing::Test {
  JobClaim() {
    std::string name = ::testing::TempDir() + "claimXXXXXX";
    folder = mkdtemp(name.data());
    setenv("XDG_STATE_HOME", folder.c_str(), 1);
  }
  ~JobClaim() override {
    unsetenv("XDG_STATE_HOME");
    std::filesystem::remove_all(folder);
  }
  std::string folder;
};

TEST_F(JobClaim, OneHasAJobAndEachRentalHasItsOwn) {
  EXPECT_FALSE(job_is_claimed("a"));
  auto first = claim_job("a");
  ASSERT_TRUE(first);
  EXPECT_TRUE(job_is_claimed("a"));
  EXPECT_EQ(code_of(claim_job("a")), Errc::already_exists);
  EXPECT_FALSE(job_is_claimed("b"));
  EXPECT_TRUE(claim_job("b"));
  first->reset();
  EXPECT_FALSE(job_is_claimed("a"));
  EXPECT_TRUE(claim_job("a"));
}

TEST_F(JobClaim, OneWaitsUntilTheOtherIsGoneHoweverItEnds) {
  std::array<int, 2> told{};
  ASSERT_EQ(pipe(told.data()), 0);
  const pid_t first = fork();
  if (first == 0) {
    const auto mine = claim_job("a");
    (void)!write(told[1], mine ? "c" : "x", 1);
    pause();
    _exit(0);
  }
  char letter = 0;
  ASSERT_EQ(read(told[0], &letter, 1), 1);
  ASSERT_EQ(letter, 'c');
  const pid_t second = fork();
  if (second == 0) {
    const auto mine = await_job("a");
    (void)!write(told[1], mine ? "w" : "x", 1);
    _exit(0);
  }
  pollfd ready{told[0], POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 200), 0) << "it waits";
  kill(first, SIGKILL);
  EXPECT_EQ(read(told[0], &letter, 1), 1);
  EXPECT_EQ(letter, 'w');
  for (int i = 0; i < 2; ++i)
    wait(nullptr);
  close(told[0]);
  close(told[1]);
}

}  // namespace
}  // namespace lockstep::rent
