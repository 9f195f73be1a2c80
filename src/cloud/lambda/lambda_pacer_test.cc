#include "cloud/lambda/lambda_pacer.h"

#include "base/error_testing.h"
#include "cloud/scripted_web_testing.h"
#include "io/fd.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace lockstep::cloud::lambda {
namespace {

using testing::answered;
using testing::ScriptedWeb;

class LambdaPacerTest : public ::testing::Test {
 protected:
  LambdaPacerTest() {
    std::string name = (std::filesystem::temp_directory_path() / "paceXXXXXX").string();
    folder = mkdtemp(name.data());
    path = folder + "/state/turns";
  }
  ~LambdaPacerTest() override { std::filesystem::remove_all(folder); }

  // Returns how long this pacer has to wait, in milliseconds.
  std::int64_t wait(LambdaPacer& pacer, bool launch) {
    const std::int64_t before = web.now;
    EXPECT_TRUE(pacer.turn(web, launch));
    return web.now - before;
  }

  std::string folder, path;
  ScriptedWeb web{[](const Question&) { return answered(500, ""); }};
};

TEST_F(LambdaPacerTest, ProcessesShareTheTurns) {
  LambdaPacer one(path, {});
  LambdaPacer other(path, {});
  EXPECT_EQ(wait(one, false), 0);
  EXPECT_EQ(wait(other, false), 1050);
  EXPECT_EQ(wait(one, true), 1050);
  EXPECT_EQ(wait(other, true), 12'100);
  EXPECT_EQ(wait(one, false), 1050);
  web.now += 60'000;
  EXPECT_EQ(wait(other, true), 0);
}

TEST_F(LambdaPacerTest, ARefusalHoldsAllBack) {
  LambdaPacer one(path, {});
  LambdaPacer other(path, {});
  one.put_off(web, std::chrono::milliseconds(9000));
  EXPECT_EQ(wait(other, false), 9000);
}

TEST_F(LambdaPacerTest, NobodyWaitsForever) {
  LambdaPacer pacer(path, {});
  pacer.put_off(web, std::chrono::milliseconds(50'000));
  const Status turn = pacer.turn(web, false);
  ASSERT_FALSE(turn);
  EXPECT_EQ(code_of(turn), Errc::unavailable);
  EXPECT_TRUE(web.pauses.empty());
}

TEST_F(LambdaPacerTest, AClockThatWasSetBackAndRubbishDoNoHarm) {
  LambdaPacer pacer(path, {});
  EXPECT_EQ(wait(pacer, true), 0);
  web.now -= 3'600'000;
  EXPECT_EQ(wait(pacer, true), 0);
  ASSERT_TRUE(io::write_file(path, "rubbish"));
  EXPECT_EQ(wait(pacer, true), 0);
  EXPECT_EQ(wait(pacer, false), 1050);
}

TEST_F(LambdaPacerTest, WithoutAFileAProcessPacesItself) {
  LambdaPacer pacer("/proc/nowhere/turns", {});
  EXPECT_EQ(wait(pacer, false), 0);
  EXPECT_EQ(wait(pacer, false), 1050);
}

TEST_F(LambdaPacerTest, TheUserMayStop) {
  LambdaPacer pacer(path, {});
  EXPECT_EQ(wait(pacer, false), 0);
  web.pauses_left = 0;
  EXPECT_EQ(code_of(pacer.turn(web, false)), Errc::canceled);
}

}  // namespace
}  // namespace lockstep::cloud::lambda
