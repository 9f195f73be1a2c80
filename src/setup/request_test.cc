#include "setup/request.h"

#include "base/text.h"

#include <gtest/gtest.h>

namespace lockstep::setup {
namespace {

TEST(SetupRequest, ArrivesAsItWasSent) {
  const SetupRequest sent{.folder = "code",
                          .specs = {"pip:./", "torch -U"},
                          .choice = SetupRequest::Choice::conda,
                          .place = "base",
                          .python = "python3.12",
                          .force = true,
                          .use_uv = false,
                          .overlay = true,
                          .wheels = {{"x.whl", 12, "ab"}}};
  const auto read = read_request(print_request(sent));
  ASSERT_TRUE(read);
  EXPECT_EQ(print_request(*read), print_request(sent));
  EXPECT_EQ(read->choice, sent.choice);
  EXPECT_EQ(read->wheels.at(0).size, 12U);
  EXPECT_EQ(read->wheels.at(0).sha256, "ab");
  EXPECT_TRUE(read->overlay);
}

TEST(SetupRequest, OthersAreRefused) {
  const std::string good = print_request({.folder = "code", .specs = {}, .wheels = {{"x.whl", 1}}});
  ASSERT_TRUE(read_request(good));
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\"code\"", "\"\""},
                                                        {"\"code\"", "1"},
                                                        {"x.whl", "../x.whl"},
                                                        {"x.whl", "x"},
                                                        {"\"size\":1", "\"size\":-1"},
                                                        {"\"size\":1", "\"size\":99999999999"},
                                                        {"\"specs\":[]", "\"specs\":[1]"},
                                                        {"\"project\"", "\"moon\""},
                                                        {"\"force\":false", "\"force\":0"},
                                                        {"\"wheels\"", "\"wheel\""},
                                                        {"}", ""}}) {
    std::string bad = good;
    replace_all(bad, from, to);
    ASSERT_NE(bad, good) << from;
    EXPECT_FALSE(read_request(bad)) << bad;
  }
}

TEST(SetupAnswer, ArrivesAsItWasSent) {
  const SetupAnswer sent{
      .code = 1,
      .error = "step 2 failed",
      .hint = "do this",
      .tail = {"ERROR: no"},
      .steps = {{"pip:./", StepAnswer::State::unchanged, 0}, {"x", StepAnswer::State::failed, 1.5}},
      .environment = {.kind = Environment::Kind::venv,
                      .prefix = "/v",
                      .python = "/v/bin/python",
                      .local = {"/l"}}};
  const auto read = read_answer(print_answer(sent));
  ASSERT_TRUE(read);
  EXPECT_EQ(print_answer(*read), print_answer(sent));
  EXPECT_EQ(read->environment, sent.environment);
  for (const char* bad : {"", "{}", "[]", "{\"code\": \"x\"}"})
    EXPECT_FALSE(read_answer(bad)) << bad;
}

}  // namespace
}  // namespace lockstep::setup
