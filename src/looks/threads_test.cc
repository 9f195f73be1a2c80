#include "looks/threads.h"

#include "looks/looks_testing.h"
#include "looks/threads_report.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::looks {
namespace {

RankLook look_at(int rank) {
  return {.rank = rank, .pid = 100 + rank, .process = asleep('S', "futex_do_wait")};
}

stacks::ThreadStack python(pid_t tid, int line) {
  return {.tid = tid, .frames = in_own_code(line)};
}

stacks::NativeThread native(pid_t tid, const std::string& name, const std::string& call = "futex") {
  return {.tid = tid,
          .name = name,
          .state = 'S',
          .call = call,
          .wchan = "futex_do_wait",
          .at = "libc.so.6+0x85b30 (near pthread_cond_wait)",
          .callers = {"libx.so+0x10 (step)"}};
}

// A rank with its main thread and `others` Python threads that wait.
RankText rank_with(int rank, int line, int others) {
  RankThreads threads;
  for (int i = 0; i < others; ++i)
    threads.python.push_back(python(10'000 * (rank + 1) + i, 7));
  threads.python.push_back(python(100 + rank, line));
  RankLook look = look_at(rank);
  look.stack = threads.python.back();
  return rank_text(look, threads);
}

TEST(FoldRanks, JoinsRanksWithTheSameThreads) {
  std::vector<RankText> ranks;
  for (int rank = 7; rank >= 0; --rank)
    ranks.push_back(rank_with(rank, rank == 3 ? 99 : 31, 2));
  const auto folded = fold_ranks(std::move(ranks));
  ASSERT_EQ(folded.size(), 2U);
  EXPECT_EQ(threads_text(folded[0]),
            "ranks 0-2, 4-7, state S, futex_do_wait: own code\n"
            "  main thread\n"
            "    /home/u/job.py:31 in hang_here\n"
            "    /home/u/job.py:55 in train\n"
            "    /home/u/job.py:70 in <module>\n"
            "  2 threads\n"
            "    /home/u/job.py:7 in hang_here\n"
            "    /home/u/job.py:55 in train\n"
            "    /home/u/job.py:70 in <module>\n");
  EXPECT_TRUE(threads_text(folded[1]).starts_with(
      "rank 3, pid 103, state S, futex_do_wait: own code\n  main thread\n"));
  EXPECT_EQ(ranks_of(folded[0]), (std::vector<int>{0, 1, 2, 4, 5, 6, 7}));
}

TEST(FoldRanks, JoinsFoldsOfSeveralNodes) {
  auto first = fold_ranks({rank_with(0, 31, 2), rank_with(1, 31, 2)});
  for (RankText& rank : fold_ranks({rank_with(2, 31, 2), rank_with(3, 31, 1)}))
    first.push_back(std::move(rank));
  const auto folded = fold_ranks(std::move(first));
  ASSERT_EQ(folded.size(), 2U);
  EXPECT_EQ(folded[0].ranks, "0-2");
  EXPECT_EQ(folded[0].threads[1].count, 2);
  EXPECT_EQ(folded[1].ranks, "");
  EXPECT_EQ(folded[1].rank, 3);
}

TEST(FoldRanks, KeepsAllRanksHoweverManyRanges) {
  std::vector<RankText> ranks;
  for (int rank = 0; rank < 10'000; rank += 2)
    ranks.push_back(rank_with(rank, 31, 0));
  const auto folded = fold_ranks(fold_ranks(std::move(ranks)));
  ASSERT_EQ(folded.size(), 1U);
  EXPECT_EQ(ranks_of(folded[0]).size(), 5'000U);
  const std::string text = threads_text(folded[0]);
  EXPECT_NE(text.find("124, 126, ..., state"), std::string::npos) << text;
}

TEST(FoldRanks, KeepsApartWhatDiffers) {
  const RankText plain = rank_with(0, 31, 0);
  const auto differs = [&](const auto& change) {
    RankText other = rank_with(1, 31, 0);
    change(other);
    return fold_ranks({plain, other}).size() == 2;
  };
  EXPECT_FALSE(differs([](RankText& rank) { rank.state = "R"; }));
  EXPECT_TRUE(differs([](RankText& rank) { rank.state = "D, nfs_wait"; }));
  EXPECT_TRUE(differs([](RankText& rank) { rank.doing = "backward"; }));
  EXPECT_TRUE(differs([](RankText& rank) { rank.threads[0].holds_gil = true; }));
  EXPECT_TRUE(differs([](RankText& rank) { rank.threads[0].native = NativeText{.runs = true}; }));
  EXPECT_TRUE(differs([](RankText& rank) { rank.left_out = 1; }));
}

TEST(RankText, HasNativeThreadsBesideThoseOfPython) {
  const RankThreads threads{.python = {python(203, 7), python(103, 31)},
                            .native = {native(103, "python3", "poll"), native(203, "python3"),
                                       native(204, "pt_nccl_watchdg")}};
  const RankText rank = rank_text(look_at(3), threads);
  EXPECT_EQ(threads_text(rank),
            "rank 3, pid 103, state S, futex_do_wait: unknown\n"
            "  main thread\n"
            "    native: poll, waits in futex_do_wait, at libc.so.6+0x85b30 (near "
            "pthread_cond_wait)\n"
            "    possible callers:\n"
            "      libx.so+0x10 (step)\n"
            "    /home/u/job.py:31 in hang_here\n"
            "    /home/u/job.py:55 in train\n"
            "    /home/u/job.py:70 in <module>\n"
            "  thread 203\n"
            "    native: futex, waits in futex_do_wait, at libc.so.6+0x85b30 (near "
            "pthread_cond_wait)\n"
            "    possible callers:\n"
            "      libx.so+0x10 (step)\n"
            "    /home/u/job.py:7 in hang_here\n"
            "    /home/u/job.py:55 in train\n"
            "    /home/u/job.py:70 in <module>\n"
            "  thread 204 (pt_nccl_watchdg) outside Python\n"
            "    native: futex, waits in futex_do_wait, at libc.so.6+0x85b30 (near "
            "pthread_cond_wait)\n"
            "    possible callers:\n"
            "      libx.so+0x10 (step)\n");
}

TEST(RankText, OfAProgramThatIsNotPythonHasItsNativeThreads) {
  stacks::NativeThread runs{.tid = 103, .name = "train", .state = 'R', .runs = true};
  const RankText rank =
      rank_text(look_at(3), {.native = {runs, native(204, "io"), native(205, "io")}});
  const auto folded = fold_ranks({rank});
  EXPECT_EQ(threads_text(folded[0]),
            "rank 3, pid 103, state S, futex_do_wait: unknown\n"
            "  main thread\n"
            "    native: runs\n"
            "  2 threads\n"
            "    native: futex, waits in futex_do_wait, at libc.so.6+0x85b30 (near "
            "pthread_cond_wait)\n"
            "    possible callers:\n"
            "      libx.so+0x10 (step)\n");
}

TEST(RankText, ClaimsNothingOfThreadsIfNoPythonStackWasRead) {
  const RankText rank = rank_text(look_at(3), {.native = {native(204, "python3")}});
  ASSERT_EQ(rank.threads.size(), 1U);
  EXPECT_EQ(rank.threads[0].name, "thread 204 (python3)");
}

TEST(RankText, HasOneMainThread) {
  const RankText rank = rank_text(
      look_at(3), {.python = {python(203, 7)}, .native = {native(103, "a"), native(203, "b")}});
  ASSERT_EQ(rank.threads.size(), 2U);
  EXPECT_EQ(rank.threads[0].name, "main thread");
  EXPECT_TRUE(rank.threads[0].frames.empty());
  EXPECT_EQ(rank.threads[1].name, "thread 203 (b)");
  // Before Python 3.11, the only thread may have no id.
  const RankText old =
      rank_text(look_at(3), {.python = {python(0, 7)}, .native = {native(103, "a")}});
  ASSERT_EQ(old.threads.size(), 1U);
  EXPECT_EQ(old.threads[0].name, "main thread");
  EXPECT_FALSE(old.threads[0].frames.empty());
}

TEST(RankText, OfOldPythonClaimsNothingOfOtherThreads) {
  // Before 3.11, only the main thread has an id.
  const RankText rank =
      rank_text(look_at(3), {.python = {python(0, 7), python(103, 31)},
                             .native = {native(103, "python3"), native(204, "python3")}});
  ASSERT_EQ(rank.threads.size(), 3U);
  EXPECT_TRUE(rank.threads[0].native);
  EXPECT_FALSE(rank.threads[1].native);
  EXPECT_EQ(rank.threads[2].name, "thread 204");
}

TEST(RankText, IsCutToABound) {
  RankText rank = rank_with(0, 31, 1000);
  bound_threads(rank, 1UL << 30);
  EXPECT_EQ(rank.threads.size(), kMostThreadTexts);
  EXPECT_EQ(rank.threads[0].name, "main thread");
  EXPECT_EQ(rank.left_out, 1001 - 256);
  bound_threads(rank, 4000);
  EXPECT_LE(size_of(rank), 4000U);
  EXPECT_EQ(rank.left_out, 1001 - static_cast<int>(rank.threads.size()));
  EXPECT_NE(threads_text(rank).find(" more threads are left out\n"), std::string::npos);
  // Equal threads are one line.
  auto folded = fold_ranks({rank_with(0, 31, 1000)});
  EXPECT_EQ(folded[0].threads.size(), 2U);
  EXPECT_EQ(folded[0].threads[1].name, "1000 threads");
}

Answer answer_of(const std::string& node, std::vector<RankText> ranks) {
  Answer answer{.node = node, .ranks = std::move(ranks), .threads = true};
  return answer;
}

TEST(ThreadsReport, IsReadBackAndMerged) {
  RankText first = rank_with(0, 31, 2);
  first.threads[0].native = NativeText{.state = "S",
                                       .call = "poll",
                                       .wchan = "do_sys_poll",
                                       .at = "libc.so.6+0x1 (poll)",
                                       .callers = {"a", "b"}};
  RankText second = rank_with(1, 31, 2);
  second.threads[0].native = first.threads[0].native;
  Answer one = answer_of("n0", fold_ranks({first}));
  one.left_out = "5-6";
  Answer two = answer_of("n1", fold_ranks({second}));
  two.refusal = "the kernel refuses";
  std::vector<Answer> answers;
  for (const Answer& answer : {one, two}) {
    auto again = read_answer(answer_json(answer));
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->threads);
    EXPECT_FALSE(again->native);
    answers.push_back(std::move(*again));
  }
  const std::string text = threads_report(answers);
  EXPECT_TRUE(
      text.starts_with("ranks 0-1, state S, futex_do_wait: own code\n  main thread\n"
                       "    native: poll, waits in do_sys_poll, at libc.so.6+0x1 (poll)\n"
                       "    possible callers:\n      a\n      b\n    /home"))
      << text;
  EXPECT_TRUE(
      text.ends_with("left out: ranks 5-6; --rank R shows one rank\n"
                     "n1: stacks are not readable: the kernel refuses\n"))
      << text;
  EXPECT_TRUE(threads_json(answers).starts_with("{\"looks\":[{\"node\":\"n0\","));
}

TEST(ThreadsReport, IsCutWithALine) {
  std::vector<Answer> answers;
  for (int node = 0; node < 8; ++node) {
    Answer answer = answer_of("n" + std::to_string(node), {});
    for (int rank = 8 * node; rank < 8 * node + 8; ++rank) {
      RankThreads threads;
      for (int i = 0; i < 1000; ++i)
        threads.python.push_back(python(5000 + i, 1000 * rank + i));
      RankText text = rank_text(look_at(rank), threads);
      bound_threads(text, 512UL << 10);
      answer.ranks.push_back(std::move(text));
    }
    answers.push_back(std::move(answer));
  }
  const std::string text = threads_report(answers);
  EXPECT_LE(text.size(), kMostReport + 200);
  EXPECT_EQ(text.find("\nleft out: ranks "), text.rfind("\nleft out: "));
  EXPECT_TRUE(text.ends_with("-63; --rank R shows one rank\n")) << text.substr(text.size() - 200);
}

TEST(ThreadsReport, NamesNodesWithOlderAgents) {
  Answer older{.node = "n0"};
  Answer newer = answer_of("n1", {});
  EXPECT_EQ(deaf_nodes({older, newer}, {.threads = true}), std::vector<std::string>{"n0"});
  EXPECT_EQ(deaf_nodes({older, newer}, {.threads = true, .native = true}).size(), 2U);
  EXPECT_TRUE(deaf_nodes({older, newer}, {.rank = 3}).empty());
}

TEST(ThreadsReport, OfAHostileHostIsHarmless) {
  const auto answer = read_answer(
      "{\"node\": \"n\", \"ranks_left_out\": \"0-2000000000\", \"ranks\": [{\"rank\": 3, "
      "\"ranks\": "
      "\"0-2000000000\", \"threads\": [{\"count\": -7, \"kind\": \"a\\u001b\", \"native\": "
      "{\"at\": "
      "\"\\u001b]0;x\\u0007\", \"possible_callers\": [7, \"\\n\"]}}, {\"native\": 7}]}]}");
  ASSERT_TRUE(answer);
  const std::string text = threads_report({*answer});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_TRUE(text.starts_with("rank")) << text;
}

}  // namespace
}  // namespace lockstep::looks
