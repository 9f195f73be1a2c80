#include "looks/row.h"

#include "looks/looks_testing.h"

#include <gtest/gtest.h>

namespace lockstep::looks {
namespace {

RankLook row_look(std::vector<stacks::Frame> frames) {
  RankLook look{.rank = 3, .pid = 103, .process = asleep('S', "futex_do_wait")};
  look.stack = stack_of(std::move(frames));
  return look;
}

RankRow row_for(const RankLook& look, Millis quiet = {}, const Verdict& verdict = {}) {
  return row_of(look, what_doing(look), {.quiet = quiet}, verdict);
}

Verdict in_state(VerdictState state) {
  Verdict verdict;
  verdict.state = state;
  return verdict;
}

NodeRows row_sample() {
  RankRow row{.rank = 3, .node = "n1", .pid = 103, .state = "waiting"};
  row.doing = "all_reduce";
  row.where = "step, train.py:88";
  row.cpu = 1.25;
  row.memory_bytes = 1 << 30;
  row.waiting_share = 0.48;
  row.loaders = 4;
  row.gpu = 1;
  row.gpu_share = 0.97;
  row.gpu_memory_bytes = 70 << 20;
  row.gpu_memory_total_bytes = 80 << 20;
  row.gpu_watts = 320.5;
  row.output_age_ms = 1200;
  row.last_line = "step 7";
  row.step = 7;
  row.step_guessed = true;
  return {.node = "n1",
          .command = "train.py",
          .attempt = 2,
          .world = 8,
          .state = "training",
          .words = "training",
          .straggler = "rank 3 makes the others wait",
          .gpus_pending = true,
          .rows = {row}};
}

TEST(RankRows, OfOtherNodesAreAdded) {
  const RankLook look = row_look(in_collective("all_reduce", 61));
  const std::vector<Seen> seen = {{&look, what_doing(look), {.quiet = Millis(9000)}}};
  Fold other = fold("n2", seen);
  other.groups[0].ranks[0] = {3, 4, 5};
  Verdict hung = in_state(VerdictState::hung);
  hung.waiting = {4, 5};
  NodeRows rows = row_sample();
  add_ranks(rows, other, hung);
  ASSERT_EQ(rows.rows.size(), 3U);
  EXPECT_EQ(rows.rows[0], row_sample().rows[0]) << "this node knows more about rank 3";
  EXPECT_EQ(rows.rows[2], (RankRow{.rank = 5,
                                   .node = "n2",
                                   .state = "waiting",
                                   .doing = "all_reduce",
                                   .where = "train, job.py:61"}));
  add_ranks(rows, other, hung);
  EXPECT_EQ(rows.rows.size(), 3U);
}

TEST(RankRows, AreReadBack) {
  const auto again = read_rows(rows_json(row_sample()));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, row_sample());
  // A line that the agent has cut stays as it is.
  NodeRows cut = row_sample();
  cut.rows[0].last_line = std::string(kMostLastLine, 'x') + "...";
  EXPECT_EQ(*read_rows(rows_json(cut)), cut);
}

TEST(RankRows, OfAHostileHostAreHarmless) {
  for (const char* text : {"", "[]", "3", "{\"rows\": 7}", "{\"rows\": [3, []]}"})
    (void)read_rows(text);
  const auto read = read_rows(
      "{\"node\": \"n\\u001b[2J\", \"words\": \"a\\nb\", \"world\": 1e300, \"rows\": [{\"rank\": "
      "-5, \"pid\": -1, \"cpu\": -3e200, \"waiting_share\": 1e99, \"input_share\": \"x\", "
      "\"output_age_ms\": -99, \"memory_bytes\": -1, \"last_line\": \"\\u001b]0;x\\u0007\\u202e\", "
      "\"steps_per_s\": 1e300, \"gpu\": -3, \"gpu_share\": 1e9, \"gpu_memory_bytes\": -1, "
      "\"gpu_watts\": 1e300, \"gpu_memory_total_bytes\": \"x\", \"state\": \"" +
      std::string(900, 's') + "\"}]}");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->rows.size(), 1U);
  const RankRow& row = read->rows[0];
  EXPECT_EQ(read->node, "n\\x1b[2J");
  EXPECT_EQ(read->words, "a\\x0ab");
  EXPECT_EQ(row.rank, 0);
  EXPECT_EQ(row.pid, 0);
  EXPECT_EQ(row.cpu, 0);
  EXPECT_EQ(row.waiting_share, 1);
  EXPECT_FALSE(row.input_share);
  EXPECT_EQ(row.output_age_ms, -1);
  EXPECT_EQ(row.memory_bytes, 0);
  EXPECT_EQ(row.last_line, "\\x1b]0;x\\x07\\xe2\\x80\\xae");
  EXPECT_LE(*row.steps_per_s, 1e9);
  EXPECT_EQ(row.gpu, 0);
  EXPECT_EQ(row.gpu_share, 1);
  EXPECT_EQ(row.gpu_memory_bytes, 0);
  EXPECT_FALSE(row.gpu_memory_total_bytes);
  EXPECT_LE(*row.gpu_watts, 1e5);
  EXPECT_LT(row.state.size(), 150U);
}

TEST(RankRows, OfTheSameNodeAndRanksAreKnown) {
  const NodeRows one = row_sample();
  NodeRows other = one;
  EXPECT_TRUE(is_known({one}, other));
  other.rows[0].rank = 4;
  EXPECT_FALSE(is_known({one}, other));
  other = one;
  other.node = "n2";
  EXPECT_FALSE(is_known({one}, other));
}

TEST(RankState, FollowsFromTheLookAndTheVerdict) {
  const Verdict training = in_state(VerdictState::training);
  RankLook look = row_look(in_own_code(88, "step"));
  EXPECT_EQ(row_for(look, {}, training).state, "training");
  EXPECT_EQ(row_for(look, {}, training).where, "step, job.py:88");
  EXPECT_EQ(row_for(look, Millis(6000), training).state, "quiet");
  EXPECT_EQ(row_for(look, {}, in_state(VerdictState::starting)).state, "starting");
  EXPECT_EQ(row_for(row_look(in_init()), {}, training).state, "starting");
  const RankLook waits = row_look(in_collective("all_reduce", 60));
  EXPECT_EQ(row_for(waits, Millis(1000), training).state, "training");
  EXPECT_EQ(row_for(waits, Millis(6000), training).state, "waiting");
  EXPECT_EQ(row_for(waits, {}, training).doing, "all_reduce");
  look.process->state = 'T';
  EXPECT_EQ(row_for(look, {}, training).state, "stopped");
  look.process.reset();
  EXPECT_EQ(row_for(look, {}, training).state, "gone");
  EXPECT_EQ(row_for(look, {}, training).doing, "");
}

TEST(RankState, OfAHungJobTellsWhoIsWaitedFor) {
  Verdict hung = in_state(VerdictState::hung);
  const RankLook look = row_look(in_own_code(88));
  EXPECT_EQ(row_for(look, Millis(30'000), hung).state, "hung");
  hung.waiting = {1, 3};
  EXPECT_EQ(row_for(look, Millis(30'000), hung).state, "waiting");
}

TEST(RankRows, OfALookBookHaveSharesAndUse) {
  LookBook book("n1", Millis(1000));
  RankLook look = row_look(in_collective("all_reduce", 60));
  look.process->rss = 1000;
  RankLook gone{.rank = 4, .pid = 104};
  io::TimePoint now{std::chrono::hours(1)};
  for (int i = 0; i < 4; ++i)
    (void)book.feed(std::vector{look, gone}, now += Millis(1000));
  EXPECT_FALSE(book.rows(std::vector{look}, {}).at(0).waiting_share) << "too few looks";
  (void)book.feed(std::vector{look, gone}, now += Millis(1000));
  const auto rows = book.rows(std::vector{look, gone}, in_state(VerdictState::training));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].node, "n1");
  EXPECT_EQ(rows[0].waiting_share, 1.0);
  EXPECT_EQ(rows[0].input_share, 0.0);
  EXPECT_EQ(rows[0].memory_bytes, 1000);
  EXPECT_EQ(rows[1].state, "gone");
  EXPECT_FALSE(rows[1].waiting_share);
}

}  // namespace
}  // namespace lockstep::looks
