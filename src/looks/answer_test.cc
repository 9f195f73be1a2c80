#include "looks/answer.h"

#include "looks/looks_testing.h"

#include <gtest/gtest.h>

namespace lockstep::looks {
namespace {

RankLook look_at(int rank, std::vector<stacks::Frame> frames) {
  RankLook look{.rank = rank, .pid = 100 + rank, .process = asleep('S', "futex_do_wait")};
  look.stack = stack_of(std::move(frames));
  return look;
}

Answer sample(const std::string& node, int rank) {
  const RankLook look = look_at(rank, in_own_code(31));
  const Seen seen{&look, what_doing(look), {}};
  Answer answer{.node = node, .command = "train.py", .attempt = 2, .world = 8};
  answer.state = "waiting";
  answer.words = "waiting: 1 rank waits";
  answer.goodput = "goodput 91 %";
  answer.straggler = "rank 3 (node n1) makes the others wait";
  answer.fold = fold(node, {&seen, 1});
  answer.collectives = {"rank 3 never entered #7"};
  answer.gpus = {"rank 3, GPU 3: 100 %"};
  stacks::ThreadStack main = *look.stack;
  main.tid = look.pid;
  answer.ranks.push_back(rank_text(look, {.python = {main}}));
  return answer;
}

TEST(Answers, AreReadBack) {
  const auto again = read_answer(answer_json(sample("n1", 3)));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->node, "n1");
  EXPECT_EQ(again->attempt, 2);
  EXPECT_EQ(again->world, 8);
  EXPECT_EQ(again->words, "waiting: 1 rank waits");
  const std::string both = answers_text({*again, sample("n2", 4)});
  const std::size_t told = both.find("straggler: rank 3 (node n1) makes the others wait\n");
  EXPECT_NE(told, std::string::npos);
  EXPECT_EQ(both.find("straggler: ", told + 1), std::string::npos) << "once for all nodes";
  EXPECT_EQ(again->collectives, std::vector<std::string>{"rank 3 never entered #7"});
  EXPECT_EQ(again->gpus, std::vector<std::string>{"rank 3, GPU 3: 100 %"});
  EXPECT_NE(answers_text({*again}).find("\n  rank 3 never entered #7\n  rank 3, GPU 3: 100 %\n"
                                        "goodput 91 %\n"),
            std::string::npos);
  EXPECT_NE(answers_text({*again, sample("n2", 4)}).find("\nn1: goodput 91 %\n"),
            std::string::npos);
  ASSERT_EQ(again->fold.groups.size(), 1U);
  EXPECT_EQ(ranks_of(again->fold.groups[0]), std::vector<int>{3});
  ASSERT_EQ(again->ranks.size(), 1U);
  ASSERT_EQ(again->ranks[0].threads.size(), 1U);
  EXPECT_EQ(again->ranks[0].threads[0].name, "main thread");
  EXPECT_EQ(again->ranks[0].threads[0].frames[0], "/home/u/job.py:31 in hang_here");
}

// Ranks that spin in a collective use CPU, so only their recorders tell that they wait.
TEST(Answers, ShowTheCollectiveOfRanksThatSpin) {
  Answer answer = sample("n1", 3);
  Evidence evidence{.inside = {{3, Millis(9000)}}, .collective = {{3, "all_reduce #7"}}};
  answer.groups = group_collectives(answer.fold, evidence);
  const auto again = read_answer(answer_json(answer));
  ASSERT_TRUE(again);
  const std::string text = answers_text({*again, sample("n2", 4)});
  EXPECT_NE(text.find("  all_reduce #7   job.py:31"), std::string::npos) << text;

  evidence = {.never_entered = {3}, .collective = {{3, "never entered #7"}}};
  answer.groups = group_collectives(answer.fold, evidence);
  EXPECT_NE(answers_text({answer}).find("never entered #7: "), std::string::npos);
}

TEST(Answers, OfAHostileHostAreHarmless) {
  for (const char* text :
       {"", "[]", "3", "{\"ranks\": 7, \"fold\": 3}", "{\"fold\": {\"nodes\": 1}}"})
    (void)read_answer(text);
  const auto read = read_answer(
      "{\"node\": \"n\\u001b[2J\", \"words\": \"a\\nb\", \"ranks\": [{\"rank\": -5, \"threads\": "
      "[{\"frames\": [\"\\u001b]0;x\\u0007\"]}]}]}");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->node.find('\x1b'), std::string::npos);
  EXPECT_EQ(read->words.find('\n'), std::string::npos);
  EXPECT_EQ(answers_text({*read}).find('\x1b'), std::string::npos);
}

TEST(Answers, OfSeveralNodesAreOneText) {
  Answer silent = sample("n2", 5);
  silent.refusal = "ptrace_scope is 2";
  const std::string text = answers_text({sample("n1", 3), silent});
  EXPECT_NE(text.find("n1: waiting: 1 rank waits\n"), std::string::npos) << text;
  EXPECT_NE(text.find("ranks 3, 5"), std::string::npos) << text;
  EXPECT_NE(text.find("n2: stacks are not readable: ptrace_scope is 2\n"), std::string::npos);
  EXPECT_NE(text.find("rank 5, pid 105, state S, futex_do_wait: own code\n  main thread\n"),
            std::string::npos)
      << text;
}

TEST(RankText, IsBoundedAndPrintable) {
  std::vector<stacks::Frame> deep(1000, {"f\x1b", "a\nb.py", 1});
  const RankText text = rank_text(look_at(0, deep), {.python = {stack_of(deep)}});
  ASSERT_EQ(text.threads.size(), 1U);
  EXPECT_FALSE(text.threads[0].whole);
  EXPECT_EQ(text.threads[0].frames.size(), 64U);
  EXPECT_EQ(text.threads[0].frames[0], "a\\x0ab.py:1 in f\\x1b");
}

}  // namespace
}  // namespace lockstep::looks
