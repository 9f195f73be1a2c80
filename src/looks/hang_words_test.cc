#include "looks/hang_words.h"

#include "looks/looks_testing.h"

#include <gtest/gtest.h>

namespace lockstep::looks {
namespace {

std::vector<stacks::Frame> in_step() {
  return {{"_engine_run_backward", kTorch + "autograd/graph.py", 824},
          {"step", "/home/u/train.py", 88},
          {"<module>", "/home/u/train.py", 120}};
}

TEST(HangWords, BlockOfTheSpecification) {
  FakeJob job(62, {});
  job.train(20);
  for (RankLook& look : job.looks)
    look.stack = stack_of(in_step());
  job.looks[3].stack = stack_of(in_loader());
  job.looks[3].process->wchan = "poll_schedule_timeout";
  auto in_collate = in_loader_child(41);
  in_collate[0].function = "collate";
  job.looks[3].children = {
      {.pid = 8122, .process = asleep('S', ""), .stack = stack_of(in_idle_loader_child())},
      {.pid = 8123, .process = asleep('D', "nfs_wait"), .stack = stack_of(in_collate)}};
  job.around.evidence.never_entered = {3};
  for (int rank = 0; rank < 62; ++rank)
    job.around.evidence.collective[rank] =
        rank == 3 ? "never entered #1742" : "all_reduce #1742 of default_pg, 268 MB";
  const Verdict& verdict = job.seconds(32);
  EXPECT_EQ(hang_words(verdict, job.folded, job.around.evidence,
                       {.attempt = 2, .round = 3, .evidence = "logs/.../attempt_2/hang-1.txt"}),
            "hang: no rank has run for 31 s (attempt 2, 62 ranks in round 3)\n"
            "  61 ranks  all_reduce #1742 of default_pg, 268 MB   train.py:88 in step, "
            "torch/autograd/graph.py\n"
            "  rank 3    never entered #1742: data loader, poll   data.py:41 in collate (loader "
            "3.1, pid 8123, state D, nfs_wait)\n"
            "  evidence: logs/.../attempt_2/hang-1.txt");
}

TEST(HangWords, RecordersSpeakForRanksThatSpin) {
  FakeJob job(2);
  job.train(20);
  for (RankLook& look : job.looks)
    look.stack = stack_of(in_own_code(88, "step"));
  for (int rank = 0; rank < 2; ++rank) {
    job.around.evidence.inside[rank] = std::chrono::seconds(60);
    job.around.evidence.collective[rank] = "all_reduce #7 of default_pg";
  }
  job.around.evidence.all_entered = true;
  job.around.evidence.sentences = {"ranks 0-1 entered #7, and none has left: network or library"};
  const Verdict& verdict =
      job.seconds(7, [](RankLook& look) { look.process->main_ns += 900'000'000; });
  EXPECT_EQ(hang_words(verdict, job.folded, job.around.evidence, {}),
            "hang: nothing that counts has moved for 6 s (attempt 1, 2 ranks)\n"
            "  ranks 0-1  all_reduce #7 of default_pg   job.py:88 in step\n"
            "  ranks 0-1 entered #7, and none has left: network or library");
}

TEST(HangWords, WithoutRecordersTheStacksSpeak) {
  FakeJob job(4);
  job.train(20);
  job.others_wait({2});
  job.looks[2].stack = stack_of(in_own_code(44));
  job.looks[2].stack->holds_gil = true;
  job.looks[2].process->wchan = "hrtimer_nanosleep";
  EXPECT_EQ(hang_words(job.seconds(7), job.folded, {}, {}),
            "hang: no rank has run for 6 s (attempt 1, 4 ranks)\n"
            "  ranks 0-1, 3  backward   job.py:61 in train, torch/autograd/graph.py\n"
            "  rank 2        sleep      job.py:44 in hang_here (holds the GIL)");
}

TEST(HangWords, StoppedRankAndNobodyToBlame) {
  FakeJob job(2);
  job.train(20);
  job.others_wait({});
  job.seconds(7);
  EXPECT_TRUE(
      hang_words(job.verdict(), job.folded, {}, {})
          .ends_with("\n  all ranks wait at the same place: look at the network or a library"));
  job.looks[1].process->state = 'T';
  job.seconds(1);
  EXPECT_EQ(hang_words(job.verdict(), job.folded, {}, {}),
            "stopped: rank 1 is stopped by a signal, 1 rank waits since 7 s (attempt 1, 2 ranks)\n"
            "  rank 0  backward              job.py:61 in train, torch/autograd/graph.py\n"
            "  rank 1  stopped by a signal   job.py:61 in train, torch/autograd/graph.py");
}

TEST(HangWords, AScriptThatSleepsIsNotBlamedOnTheNetwork) {
  FakeJob job(2);
  job.train(20);
  for (RankLook& look : job.looks) {
    look.stack = stack_of(in_own_code(44));
    look.process->wchan = "hrtimer_nanosleep";
  }
  job.seconds(7);
  EXPECT_TRUE(hang_words(job.verdict(), job.folded, {}, {})
                  .ends_with("\n  all ranks wait in the code of the script"));
  job.looks[1].process.reset();
  job.looks[1].stack.reset();
  job.seconds(7);
  EXPECT_NE(hang_words(job.verdict(), job.folded, {}, {}).find("in the code of the script"),
            std::string::npos)
      << "though the other rank has ended";
}

TEST(HangWords, SeveralNodesNameTheMachine) {
  const RankLook look{
      .rank = 9, .process = asleep('S', "hrtimer_nanosleep"), .stack = stack_of(in_own_code(31))};
  const std::vector<Seen> seen = {{&look, what_doing(look), {}}};
  const RankLook other{
      .rank = 0, .process = asleep('S', "futex_do_wait"), .stack = stack_of(in_step())};
  const std::vector<Seen> first = {{&other, what_doing(other), {}}};
  const std::vector<Fold> folds = {fold("n1", first), fold("n2", seen)};
  EXPECT_EQ(fold_words(merge(folds), {}),
            "  rank 0  backward   train.py:88 in step, torch/autograd/graph.py\n"
            "  rank 9  sleep      job.py:31 in hang_here (n2)\n");
}

TEST(HangWords, WaitingLine) {
  FakeJob job(8);
  job.train(20);
  job.others_wait({0});
  job.looks[0].stack = stack_of({{"prepare", "/home/u/prepare.py", 112}});
  EXPECT_EQ(waiting_words(job.verdict()), "");
  job.seconds(241, [](RankLook& look) {
    if (look.rank == 0) look.process->main_ns += 500'000'000;
  });
  EXPECT_EQ(waiting_words(job.verdict()),
            "waiting: 7 ranks wait for rank 0 at prepare.py:112 since 4 min");
  EXPECT_EQ(verdict_words(job.verdict()), waiting_words(job.verdict()));
}

TEST(HangWords, SentencesForAFailureReport) {
  FakeJob job(8);
  job.train(1);
  for (RankLook& look : job.looks)
    look.stack = stack_of({{"all_reduce", kTorch + "distributed/distributed_c10d.py", 2730},
                           {"step", "/home/u/train.py", 88}});
  job.look();
  const std::vector<int> failed = {5};
  EXPECT_EQ(group_sentences(job.folded, failed),
            std::vector<std::string>{"the other 7 ranks were in all_reduce, train.py:88"});
  job.looks[0].stack = stack_of({{"load_rows", "/home/u/data.py", 12}});
  job.look();
  EXPECT_EQ(group_sentences(job.folded, failed),
            (std::vector<std::string>{"ranks 1-4, 6-7 were in all_reduce, train.py:88",
                                      "rank 0 was in load_rows, data.py:12"}));
  EXPECT_EQ(group_sentences(job.folded, failed, 1).size(), 1U);
  for (RankLook& look : job.looks)
    look.stack = {};
  job.look();
  EXPECT_EQ(group_sentences(job.folded, failed),
            std::vector<std::string>{"the other 7 ranks had no Python stack"});
}

TEST(HangWords, HostileNamesAndManyGroupsStayBounded) {
  FakeJob job(300);
  for (RankLook& look : job.looks)
    look.stack = stack_of(
        {{"\x1b]0;" + std::string(5000, 'f'), "/\x1b[2J" + std::string(5000, 'a'), look.rank}});
  job.seconds(7);
  const std::string text = hang_words(job.verdict(), job.folded, {}, {});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_LT(text.size(), 6000U);
  EXPECT_NE(text.find("\n  and 284 more ranks"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::looks
