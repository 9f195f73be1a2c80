#include "jobs/on_slurm/login_submit.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::on_slurm {
namespace {

TEST(LoginSubmit, TheHostReadsWhatItIsTold) {
  const LoginRequest request{.id = "a1b2c3d4",
                             .folder = "an 'odd' place",
                             .words = {"--json", "-N2", "--", "train.py", "a\nb"},
                             .env = {"KEY=s3cret", "EMPTY="},
                             .preview = true};
  const auto read = parse_request(request_text(request));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, request.id);
  EXPECT_EQ(read->folder, request.folder);
  EXPECT_EQ(read->words, request.words);
  EXPECT_EQ(read->env, request.env);
  EXPECT_TRUE(read->preview);
}

TEST(LoginSubmit, OtherRequestsAreRefused) {
  for (const char* text : {"", "[]", "{}", R"({"id":"a1b2c3d4"})", R"({"id":"../x","folder":"p"})",
                           R"({"id":"a/../../b","folder":"p"})", R"({"id":7,"folder":"p"})"})
    EXPECT_FALSE(parse_request(text)) << text;
  const auto odd =
      parse_request(R"({"id":"a1b2c3d4","folder":"p","words":[1,"x"],"env":{},"preview":1})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->words, std::vector<std::string>{"x"});
  EXPECT_FALSE(odd->preview);
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
