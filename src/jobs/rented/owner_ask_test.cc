#include "jobs/rented/owner_ask.h"

#include "base/error_testing.h"
#include "jobs/rented/owned_testing.h"

namespace lockstep::jobs::rented {
namespace {

class OwnerAskTest : public OwnedTest {
 protected:
  hosts::RunCommand run() {
    return [this](io::Loop&,
                  const hosts::CommandRequest& request) -> Result<std::vector<hosts::HostEnding>> {
      requests_.push_back(request);
      if (request.on_errors) request.on_errors(0, "warns\x1b[2J\n");
      return std::vector<hosts::HostEnding>{ending_};
    };
  }
  hosts::HostEnding ending_ = {.out = "answer"};
  std::vector<hosts::CommandRequest> requests_;
};

TEST_F(OwnerAskTest, TheHostAnswersWithItsOutput) {
  Asked asked{};
  EXPECT_EQ(ask_owner("me@h", {"begin"}, "request", &asked, run()).value(), "answer");
  EXPECT_EQ(asked, Asked::ended);
  EXPECT_EQ(requests_.at(0).argv, (Words{"host-rental", "begin"}));
  EXPECT_EQ(requests_[0].given, (Words{"request"}));
  ASSERT_TRUE(ask_owner("me@h", {"look", "r", "ranks"}, {}, nullptr, run()));
  EXPECT_GT(requests_[1].most_kept, requests_[0].most_kept) << "all ranks of a large job";
  ASSERT_TRUE(ask_owner("me@h", {"state", "r"}, {}, nullptr, run()));
  EXPECT_LT(requests_[2].limit, requests_[1].limit);
}

TEST_F(OwnerAskTest, AnErrorSaysHowFarTheRequestCame) {
  Asked asked{};
  ending_ = {.code = 1, .err = "lockstep host-rental: error: no key\n"};
  const auto refused = ask_owner("me@h", {"begin"}, {}, &asked, run());
  EXPECT_EQ(refused.error().message, "me@h: no key");
  EXPECT_EQ(asked, Asked::ended);
  ending_ = {.code = 255, .error = "no route"};
  EXPECT_EQ(code_of(ask_owner("me@h", {"begin"}, {}, &asked, run())), Errc::unavailable);
  EXPECT_EQ(asked, Asked::unanswered);
  ending_.unasked = true;
  EXPECT_EQ(code_of(ask_owner("me@h", {"begin"}, {}, &asked, run())), Errc::unavailable);
  EXPECT_EQ(asked, Asked::never);
}

TEST_F(OwnerAskTest, ACommandThereGivesItsCodeAndPrintableWords) {
  ending_ = {.code = 3, .out = "cost\x1b[2J\n"};
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_at_owner(course_, {"cost", "lab"}, OwnerOutput::words, run()).value(), 3);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warns\\x1b[2J\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "cost\\x1b[2J\n");
  EXPECT_EQ(requests_.at(0).argv, (Words{"host-rental", "ask", "r", "lab", "cost", "lab"}));
  EXPECT_FALSE(requests_[0].output == hosts::CommandRequest::Output::print);
  ending_ = {};
  EXPECT_EQ(run_at_owner(course_, {"logs", "lab"}, OwnerOutput::job, run()).value(), 0);
  EXPECT_FALSE(requests_.at(1).on_errors) << "a job's output is shown as it is";
}

}  // namespace
}  // namespace lockstep::jobs::rented
