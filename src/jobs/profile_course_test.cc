#include "jobs/profile_course.h"

#include <gtest/gtest.h>

namespace lockstep::jobs {
namespace {

using status::ProfileState;
using std::chrono::seconds;
using Texts = std::vector<std::string>;

constexpr io::TimePoint kStart{seconds(1000)};

ProfileAnswers::Agent says(int host, std::vector<status::RankProfile> ranks) {
  return {.host = host,
          .says = {.node = "n" + std::to_string(host), .folder = "/f", .ranks = std::move(ranks)}};
}

ProfileAnswers::Agent refuses(int host, const std::string& why) {
  return {.host = host, .says = {.node = "n" + std::to_string(host), .refusal = why, .hint = "do"}};
}

std::vector<int> ranks_of(const std::vector<TraceThere>& traces) {
  std::vector<int> ranks;
  ranks.reserve(traces.size());
  for (const TraceThere& each : traces)
    ranks.push_back(each.rank);
  return ranks;
}

TEST(ProfileCourse, WaitsForRanksThatMayStillAnswer) {
  ProfileCourse course;
  ASSERT_TRUE(course.begin({.agents = {says(0, {{.rank = 0}, {.rank = 1}, {.rank = 2}})}}, 7, {},
                           kStart, seconds(60)));
  const auto traces =
      course.feed({.agents = {says(0, {{.rank = 0, .state = ProfileState::written},
                                       {.rank = 1, .state = ProfileState::ordered},
                                       {.rank = 2, .state = ProfileState::absent}})}},
                  kStart);
  ASSERT_EQ(ranks_of(traces), std::vector{0});
  EXPECT_EQ(traces[0].folder, "/f");
  EXPECT_EQ(traces[0].profile, 7);
  course.taken(0);
  EXPECT_FALSE(course.is_over(kStart));
  EXPECT_EQ(course.waits_for(),
            "waiting for 1 rank to finish the profile, 1 rank to ask for orders");
  EXPECT_TRUE(course
                  .feed({.agents = {says(0, {{.rank = 0, .state = ProfileState::written},
                                             {.rank = 1, .state = ProfileState::gone},
                                             {.rank = 2, .state = ProfileState::absent}})}},
                        kStart)
                  .empty())
      << "it is taken";
  EXPECT_FALSE(course.is_over(kStart + seconds(14)));
  EXPECT_TRUE(course.is_over(kStart + seconds(15)));
  EXPECT_EQ(
      course.missing(),
      (Texts{"rank 2: no process asks for profiles: PyTorch without Kineto, or not imported yet",
             "rank 1: has ended"}));
}

TEST(ProfileCourse, TheLimitEndsIt) {
  ProfileCourse course;
  const ProfileAnswers answers{.agents = {says(0, {{.rank = 0, .state = ProfileState::ordered},
                                                   {.rank = 1, .state = ProfileState::ordered}})}};
  ASSERT_TRUE(course.begin(answers, 7, {}, kStart, seconds(60)));
  EXPECT_FALSE(course.is_over(kStart + seconds(59)));
  EXPECT_TRUE(course.is_over(kStart + seconds(60)));
  ASSERT_EQ(course.missing().size(), 1U);
  EXPECT_TRUE(course.missing()[0].starts_with("ranks 0-1: no trace was written in time"));
  course.taken(0);
  course.failed(1, "disk full");
  EXPECT_EQ(course.missing(), (Texts{"rank 1: disk full"}));
  course.taken(1);
  EXPECT_TRUE(course.is_over(kStart));
  EXPECT_EQ(course.waits_for(), "");
}

TEST(ProfileCourse, AnAgentThatHasEndedIsNotWaitedFor) {
  ProfileCourse course;
  ASSERT_TRUE(
      course.begin({.agents = {says(0, {{.rank = 0}, {.rank = 1}})}}, 7, {}, kStart, seconds(60)));
  course.feed({}, kStart + seconds(1));
  EXPECT_TRUE(course.is_over(kStart + seconds(1)));
  EXPECT_EQ(course.missing(), (Texts{"ranks 0-1: has ended"}));
}

TEST(ProfileCourse, AnAgentThatMissesALookHasNotEnded) {
  ProfileCourse course;
  const auto ordered = [](int rank) {
    return says(0, {{.rank = rank, .state = ProfileState::ordered}});
  };
  const ProfileAnswers::Agent late{
      .host = 0, .says = {.node = "a", .refusal = "does not answer", .late = true}};
  ASSERT_TRUE(course.begin({.agents = {ordered(0), ordered(1)}}, 7, {}, kStart, seconds(600)));
  course.feed({.agents = {ordered(0), late}}, kStart + seconds(1));
  EXPECT_FALSE(course.is_over(kStart + seconds(1)));
  course.taken(0);
  course.feed({.agents = {ordered(0), ordered(1)}}, kStart + seconds(10));
  course.feed({.agents = {ordered(0), late}}, kStart + seconds(20));
  course.feed({.agents = {ordered(0), late}}, kStart + seconds(49));
  EXPECT_FALSE(course.is_over(kStart + seconds(49)));
  course.feed({.agents = {ordered(0), late}}, kStart + seconds(50));
  EXPECT_TRUE(course.is_over(kStart + seconds(50)));
  EXPECT_EQ(course.missing(), (Texts{"rank 1: a: does not answer"}));
  ProfileCourse other;
  EXPECT_EQ(other.begin({.agents = {late}}, 7, {}, kStart, seconds(60)).error().message,
            "does not answer");
}

TEST(ProfileCourse, AHostIsLostOnlyAfterSomeTime) {
  ProfileCourse course;
  const auto ordered = [](int host, int rank) {
    return says(host, {{.rank = rank, .state = ProfileState::ordered}});
  };
  ASSERT_TRUE(
      course.begin({.agents = {ordered(0, 0), ordered(1, 1)}}, 7, {}, kStart, seconds(600)));
  const ProfileAnswers half{.agents = {ordered(0, 0)}, .silent = {{1, "b: no route to host"}}};
  course.feed(half, kStart + seconds(29));
  EXPECT_EQ(course.hosts(), (std::set{0, 1}));
  course.feed({.agents = {ordered(0, 0), ordered(1, 1)}}, kStart + seconds(30));
  course.feed(half, kStart + seconds(59));
  EXPECT_EQ(course.hosts(), (std::set{0, 1}));
  // The time of a fetch between two looks is no silence.
  course.feed(half, kStart + seconds(88));
  EXPECT_EQ(course.hosts(), (std::set{0, 1}));
  course.feed(half, kStart + seconds(89));
  EXPECT_EQ(course.hosts(), std::set{0});
  course.taken(0);
  EXPECT_EQ(course.held_hosts(), std::set{0}) << "a host that is given up delays no other";
  EXPECT_TRUE(course.is_over(kStart + seconds(90)));
  EXPECT_FALSE(course.is_late(kStart + seconds(90)));
  EXPECT_EQ(course.missing(), (Texts{"rank 1: b: no route to host"}));
}

TEST(ProfileCourse, TheTimeOfFetchesDoesNotCount) {
  ProfileCourse course;
  ASSERT_TRUE(course.begin({.agents = {says(0, {{.rank = 0, .state = ProfileState::ordered}})}}, 7,
                           {}, kStart, seconds(60)));
  course.lasts_longer(seconds(100));
  course.feed({.agents = {says(0, {{.rank = 0, .state = ProfileState::absent}})}}, kStart);
  EXPECT_FALSE(course.is_over(kStart + seconds(114))) << "the rank may still ask for orders";
  EXPECT_TRUE(course.is_over(kStart + seconds(115)));
  course.feed({.agents = {says(0, {{.rank = 0, .state = ProfileState::ordered}})}}, kStart);
  EXPECT_FALSE(course.is_over(kStart + seconds(159)));
  EXPECT_TRUE(course.is_late(kStart + seconds(160)));
  EXPECT_TRUE(course.is_over(kStart + seconds(160)));
}

TEST(ProfileCourse, TheTimeOfFetchesMakesNoHostSilent) {
  ProfileCourse course;
  ASSERT_TRUE(course.begin({.agents = {says(0, {{.rank = 0, .state = ProfileState::ordered}})}}, 7,
                           {}, kStart, seconds(600)));
  const ProfileAnswers silent{.silent = {{0, "no answer"}}};
  course.feed(silent, kStart + seconds(1));
  course.lasts_longer(seconds(40));
  course.feed(silent, kStart + seconds(43));
  EXPECT_EQ(course.hosts(), std::set{0});
  course.feed(silent, kStart + seconds(71));
  EXPECT_EQ(course.hosts(), std::set<int>()) << "30 s beside the fetch";
}

TEST(ProfileCourse, TooManyRanksAreNotForgotten) {
  std::vector<status::RankProfile> ranks(5000);
  for (int rank = 0; rank < 5000; ++rank)
    ranks[static_cast<std::size_t>(rank)] = {.rank = rank, .state = ProfileState::ordered};
  ProfileCourse course;
  ASSERT_TRUE(course.begin({.agents = {says(0, ranks)}}, 7, {}, kStart, seconds(60)));
  EXPECT_EQ(course.missing().at(0), "only 4096 ranks: --ranks chooses others");
}

TEST(ProfileCourse, TheOtherHostsBeginWithoutASilentOne) {
  ProfileCourse course;
  ASSERT_TRUE(course.begin({.agents = {says(0, {{.rank = 0}}), refuses(1, "no place for a socket"),
                                       refuses(1, "no place for a socket")},
                            .silent = {{2, "c: no route to host"}}},
                           7, {0, 5}, kStart, seconds(60)));
  course.taken(0);
  EXPECT_TRUE(course.is_over(kStart));
  EXPECT_EQ(course.hosts(), std::set<int>());
  EXPECT_EQ(course.missing(), (Texts{"c: no route to host", "n1: no place for a socket",
                                     "rank 5: does not run, or no agent answers for it"}));
}

TEST(ProfileCourse, WithoutAnyRankTheReasonIsAnError) {
  const auto problem = [](const ProfileAnswers& answers) {
    ProfileCourse course;
    const Status begun = course.begin(answers, 7, {9}, kStart, seconds(60));
    return begun ? std::string() : begun.error().message + "; " + begun.error().hint;
  };
  EXPECT_EQ(problem({}), "no agent of the job answers; ");
  EXPECT_EQ(problem({.silent = {{0, "a: no route to host"}}}), "a: no route to host; ");
  EXPECT_EQ(problem({.agents = {refuses(0, "no")}}), "no; do");
  EXPECT_EQ(problem({.agents = {says(0, {})}}), "no rank of --ranks runs; ");
  EXPECT_EQ(problem({.agents = {says(0, {{.rank = 8}})}}), "no rank of --ranks runs; ");
  ProfileCourse course;
  EXPECT_EQ(course.begin({.agents = {says(0, {})}}, 7, {}, kStart, seconds(60)).error().message,
            "no rank runs now");
}

TEST(ProfileCourse, AHostSpeaksForItsOwnRanksOnly) {
  ProfileCourse course;
  ASSERT_TRUE(
      course.begin({.agents = {says(0, {{.rank = 0}}), says(1, {{.rank = 0}, {.rank = 1}})}}, 7, {},
                   kStart, seconds(60)));
  const auto written = [](int rank) {
    return status::RankProfile{.rank = rank, .state = ProfileState::written};
  };
  const auto traces = course.feed(
      {.agents = {says(0, {{.rank = 0}}), says(1, {written(0), written(1), written(2)})}}, kStart);
  EXPECT_EQ(ranks_of(traces), std::vector{1});
}

TEST(ProfileCourse, TheNumberOfRanksIsBounded) {
  ProfileCourse course;
  ProfileAnswers answers;
  for (int rank = 0; rank < 5000; ++rank)
    answers.agents.push_back(says(rank, {{.rank = rank, .state = ProfileState::written}}));
  ASSERT_TRUE(course.begin(answers, 7, {}, kStart, seconds(60)));
  EXPECT_EQ(course.feed(answers, kStart).size(), 4096U);
}

}  // namespace
}  // namespace lockstep::jobs
