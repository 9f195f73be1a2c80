#include "status/profile_answer.h"

#include <gtest/gtest.h>

namespace lockstep::status {
namespace {

TEST(ProfileAnswer, AnAnswerIsReadAsItWasWritten) {
  const ProfileAnswer answer{.node = "n1",
                             .id = 3,
                             .folder = "/tmp/lockstep-profile-x",
                             .ranks = {{.rank = 7, .state = ProfileState::busy}}};
  const auto read = read_profile_answer(profile_answer_json(answer));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->folder, answer.folder);
  EXPECT_EQ(read->id, 3);
  ASSERT_EQ(read->ranks.size(), 1U);
  EXPECT_EQ(read->ranks[0].rank, 7);
  EXPECT_EQ(read->ranks[0].state, ProfileState::busy);
  EXPECT_FALSE(read_profile_answer("{}"));
  EXPECT_FALSE(read_profile_answer("[1"));
}

TEST(ProfileAnswer, AQueryIsReadAsItWasWritten) {
  const ProfileQuery query{.what = ProfileQuery::What::start,
                           .wish = {.steps = 5, .every = 100, .limit = 60, .ranks = "0-3,7"}};
  EXPECT_EQ(print_profile_query(query),
            "do=start&id=0&steps=5&every=100&ms=0&limit=60&ranks=0-3,7");
  const auto read = read_profile_query(print_profile_query(query));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->what, query.what);
  EXPECT_EQ(print_profile_query(*read), print_profile_query(query));
}

TEST(ProfileAnswer, BadQueriesAreRefused) {
  for (const char* bad : {"", "do", "do=stop", "id=x", "id=-1", "steps=10001", "every=0", "ms=1e3",
                          "ms=3600001", "limit=86401"})
    EXPECT_FALSE(read_profile_query(bad)) << bad;
  EXPECT_TRUE(read_profile_query("do=end&id=2&new=1"));
}

TEST(ProfileAnswer, FilesAreKnownByTheirNames) {
  EXPECT_TRUE(is_profile_file(profile_file_stem(4, 12) + "_4711.json", 4, 12));
  for (const char* bad :
       {"profile-4-rank-12.json", "profile-4-rank-12_.json", "profile-4-rank-12_4711.json.tmp",
        "profile-4-rank-12_4711x.json", "profile-4-rank-1_4711.json", "profile-4-rank-12_../a.json",
        "profile-4-rank-12_12345678901.json"})
    EXPECT_FALSE(is_profile_file(bad, 4, 12)) << bad;
}

}  // namespace
}  // namespace lockstep::status
