#include "jobs/on_hosts/node_words.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::on_hosts {
namespace {

using Words = std::vector<std::string>;
using AllWords = std::vector<Words>;

const std::string kTags = "--log-line-prefix-template=[rank${rank}]: ";

TEST(NodeWords, OneWorkerOnOneHostRunsAsTheUserWroteIt) {
  EXPECT_EQ(words_of_nodes({.nodes = {{}}, .job = "j"}, {}), AllWords{{}});
  EXPECT_EQ(words_of_nodes({.nodes = {{}}, .job = "j"}, {.workers = true, .one_worker = true}),
            AllWords{{}});
  EXPECT_EQ(words_of_nodes({.nodes = {{.slots = "3"}}, .job = "j"}, {}), AllWords{{"--slots=3"}});
}

TEST(NodeWords, LinesOfSeveralWorkersOnOneHostHaveTags) {
  const AllWords tagged{{"--tee=3", kTags}};
  EXPECT_EQ(words_of_nodes({.nodes = {{}}, .job = "j"}, {.workers = true}), tagged);
  EXPECT_EQ(words_of_nodes({.nodes = {{.slots = "0,1"}}, .job = "j"}, {}),
            (AllWords{{"--tee=3", kTags, "--slots=0,1"}}));
  EXPECT_EQ(words_of_nodes({.nodes = {{.workers = 4}}, .job = "j"}, {}),
            (AllWords{{"--tee=3", kTags, "--nproc-per-node=4"}}));
}

TEST(NodeWords, NodesMeetUnderTheJobsId) {
  EXPECT_EQ(words_of_nodes({.nodes = {{}, {.workers = 2}}, .job = "j", .needs_endpoint = true}, {}),
            (AllWords{{"--tee=3", kTags, "--nnodes=2", "--rdzv-id=j", "--node-rank=0",
                       "--rdzv-backend=lockstep"},
                      {"--tee=3", kTags, "--nproc-per-node=2", "--nnodes=2", "--rdzv-id=j",
                       "--node-rank=1", "--rdzv-backend=lockstep", "--report-tails=none"}}));
}

TEST(NodeWords, AWordOfTheUserIsNotGivenAgain) {
  const UserWords all{.workers = true,
                      .one_worker = true,
                      .nodes = true,
                      .run_id = true,
                      .backend = true,
                      .meeting = true,
                      .line_form = true,
                      .tails = true,
                      .replacement = true};
  const NodeFacts node{.workers = 2, .slots = "0,1"};
  EXPECT_EQ(words_of_nodes({.nodes = {node, node}, .job = "j", .run_id = "r", .rented = true}, all),
            (AllWords{{}, {}}));
}

TEST(NodeWords, AllAttemptsOnRentedMachinesHaveOneRunId) {
  EXPECT_EQ(words_of_nodes({.nodes = {{}}, .job = "j", .run_id = "r", .rented = true}, {}),
            (AllWords{{"--rdzv-id=r", "--rdzv-endpoint=localhost:0"}}));
  // Where the user said where the node meets, the id alone is ours.
  EXPECT_EQ(words_of_nodes({.nodes = {{}}, .job = "j", .run_id = "r"}, {.meeting = true}),
            AllWords{{"--rdzv-id=r"}});
  EXPECT_EQ(words_of_nodes({.nodes = {{}, {}}, .job = "j", .run_id = "r", .rented = true},
                           {.line_form = true, .tails = true}),
            (AllWords{{"--rdzv-id=r", "--nnodes=2", "--no-replacement"},
                      {"--rdzv-id=r", "--nnodes=2", "--no-replacement"}}));
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
