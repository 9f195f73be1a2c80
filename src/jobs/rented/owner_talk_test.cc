#include "jobs/rented/owner_talk.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::rented {
namespace {

OwnerRequest some_request() {
  return {.rental = "abcdefghij0123456789",
          .cluster = "lab",
          .client = "abcdefgh01234567",
          .folder = "project/sub",
          .words = {"--on-demand=L4:1", "--", "train.py", "--name=a \"b\"\n"},
          .variables = {{"TOKEN", "se\"cret\n\xC3\xA4"}, {"EMPTY", ""}}};
}

TEST(OwnerTalk, ARequestArrivesAsItWasSent) {
  const OwnerRequest sent = some_request();
  const auto read = read_owner_request(owner_request_text(sent));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rental, sent.rental);
  EXPECT_EQ(read->cluster, "lab");
  EXPECT_EQ(read->client, sent.client);
  EXPECT_EQ(read->folder, sent.folder);
  EXPECT_EQ(read->words, sent.words);
  EXPECT_EQ(read->variables, sent.variables);
}

TEST(OwnerTalk, TheCourseGetsTheValuesAndNoWords) {
  OwnerRequest sent = some_request();
  const std::string text = kept_request_text(sent);
  sent.words.emplace_back(200'000, 'x');
  EXPECT_EQ(kept_request_text(sent), text) << "the words count for the limit of a variable";
  const auto read = read_owner_request(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rental, sent.rental);
  EXPECT_EQ(read->variables, sent.variables);
}

TEST(OwnerTalk, NamesThatBecomePathsAreChecked) {
  for (const auto member : {&OwnerRequest::rental, &OwnerRequest::cluster, &OwnerRequest::client})
    for (const char* bad : {"", "../../x", "a/b"}) {
      OwnerRequest request = some_request();
      request.*member = bad;
      EXPECT_FALSE(read_owner_request(owner_request_text(request))) << bad;
    }
  EXPECT_FALSE(read_owner_request(""));
  EXPECT_FALSE(read_owner_request("{}"));
}

TEST(OwnerTalk, AStateArrivesAndItsNoteIsMadeSafeForATerminal) {
  const OwnedState sent{.known = true,
                        .ended = true,
                        .state = "failed",
                        .code = 3,
                        .note = "outputs in out\x1b[2J",
                        .job = "k3v9qa"};
  const auto read = read_owned_state(owned_state_text(sent));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->known && read->ended);
  EXPECT_EQ(read->state, "failed");
  EXPECT_EQ(read->code, 3);
  EXPECT_EQ(read->note.find('\x1b'), std::string::npos);
  EXPECT_EQ(read->job, "k3v9qa");
  EXPECT_FALSE(read_owned_state("no JSON"));
}

}  // namespace
}  // namespace lockstep::jobs::rented
