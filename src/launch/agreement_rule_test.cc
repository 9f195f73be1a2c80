// Options about which the agents of a job agree, or which they keep to themselves: the order of
// ranks, secrets and their files, the limit of the exit barrier.
#include "launch/launch_testing.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

using rendezvous::RankOrder;

// Three nodes over a backend, with an order of ranks, and this node's rank or none.
Result<LaunchConfig> ordered(const char* backend, const char* order,
                             std::optional<int> rank = std::nullopt) {
  RawOptions raw;
  raw.script = "T";
  raw.nnodes = "3";
  raw.rdzv_backend = backend;
  raw.rdzv_endpoint = "h:1";
  raw.node_rank = rank;
  if (order != nullptr) raw.rank_order = order;
  return make_launch_config(raw, Machine{}.facts());
}

TEST(RankOrder, FollowsTheBackend) {
  EXPECT_EQ(ordered("lockstep", nullptr)->rank_order, RankOrder::host);
  EXPECT_EQ(ordered("lockstep", "host")->rank_order, RankOrder::host);
  EXPECT_EQ(ordered("etcd3", "address", 1)->rank_order, RankOrder::address);
  EXPECT_EQ(ordered("lockstep", nullptr, 1)->rank_order, RankOrder::node_rank);
  EXPECT_EQ(ordered("lockstep", "node-rank", 7)->node_rank, 7);  // a spare's
  EXPECT_EQ(ordered("static", "node-rank", 1)->rank_order, RankOrder::node_rank);
  EXPECT_EQ(ordered("c10d", "address")->rank_order, RankOrder::address);
  EXPECT_EQ(ordered("c10d", "host")->rank_order, RankOrder::host);
  EXPECT_EQ(ordered("etcd-v2", "node-rank", 2)->node_rank, 2);
  EXPECT_TRUE(ordered("etcd-v2", "node-rank", 2)->warnings.empty());
  EXPECT_EQ(ordered("c10d", nullptr, 1)->rank_order, RankOrder::address);
  EXPECT_FALSE(ordered("c10d", nullptr, 1)->node_rank_given);
  EXPECT_FALSE(ordered("c10d", "node-rank"));
  EXPECT_FALSE(ordered("lockstep", nullptr, 32766));
  EXPECT_FALSE(ordered("lockstep", "node-rank"));
  EXPECT_FALSE(ordered("lockstep", "x"));
  EXPECT_FALSE(ordered("static", "host", 1));
  EXPECT_FALSE(ordered("etcd", "address"));
}

Result<LaunchConfig> with_token(SecretFile file, std::optional<std::string> variable = {}) {
  Machine machine;
  machine.secrets["key"] = std::move(file);
  RawOptions raw;
  raw.script = "T";
  raw.rdzv_token_file = "key";
  raw.rdzv_token = std::move(variable);
  return make_launch_config(raw, machine.facts());
}

TEST(Token, ComesFromAFileThatOnlyItsOwnerReads) {
  EXPECT_EQ(with_token({" s3cret\n", 0600})->rdzv_token, "s3cret");
  EXPECT_EQ(with_token({"s3cret", 0400}, "other")->rdzv_token, "s3cret");
  EXPECT_EQ(with_token({std::string(4096, 'x'), 0600})->rdzv_token->size(), 4096U);
  const struct {
    SecretFile file;
    const char* words;
  } rows[] = {
      {{"s", 0644}, "other users may use key (mode 0644)"},
      {{"s", 0640}, "(mode 0640)"},
      {{"s", 0602}, "(mode 0602)"},
      {{"", 0600}, "the token is empty"},
      {{" \n", 0600}, "the token is empty"},
      {{std::string(4097, 'x'), 0600}, "is longer than 4096 bytes"},
  };
  for (const auto& row : rows) {
    const auto config = with_token(row.file);
    ASSERT_FALSE(config) << row.words;
    EXPECT_NE(config.error().message.find(row.words), std::string::npos) << config.error().message;
  }
}

TEST(Password, OfEtcdComesFromAFileThatOnlyItsOwnerReads) {
  const auto with = [](const char* backend, SecretFile file) {
    Machine machine;
    machine.secrets["pw"] = std::move(file);
    RawOptions raw;
    raw.script = "T";
    raw.nnodes = "2";
    raw.rdzv_backend = backend;
    raw.rdzv_endpoint = "h";
    raw.rdzv_conf = "user=u,password_file=pw";
    return make_launch_config(raw, machine.facts());
  };
  EXPECT_TRUE(with("etcd3", {"s3cret", 0400}));
  EXPECT_TRUE(with("lockstep", {"not read", 0644}));
  const auto open = with("etcd3", {"s3cret", 0644});
  ASSERT_FALSE(open);
  EXPECT_NE(open.error().message.find("password_file: other users may use pw (mode 0644)"),
            std::string::npos)
      << open.error().message;
  EXPECT_EQ(open.error().hint, "chmod 600 pw");
  EXPECT_FALSE(with("etcd3", {std::string(4097, 'x'), 0600}));
}

TEST(Token, IsUsedByTheBackendsThatHaveOne) {
  const auto warnings = [](const char* backend) {
    Machine machine;
    machine.secrets["key"] = {"s3cret", 0600};
    RawOptions raw;
    raw.script = "T";
    raw.nnodes = "2";
    raw.rdzv_backend = backend;
    raw.rdzv_endpoint = "h:1";
    raw.rdzv_token_file = "key";
    return make_launch_config(raw, machine.facts())->warnings;
  };
  EXPECT_EQ(warnings("lockstep"), Words());
  EXPECT_EQ(warnings("etcd3"), Words());
  EXPECT_EQ(warnings("c10d"),
            Words({"the rendezvous token is not used: the c10d backend has none"}));
}

TEST(Token, ComesFromTheEnvironment) {
  const auto config = make([](RawOptions& raw) { raw.rdzv_token = "s3cret"; });
  ASSERT_TRUE(config);
  EXPECT_EQ(config->rdzv_token, "s3cret");
  EXPECT_EQ(config->origins.at("rdzv-token-file").name, "LOCKSTEP_RDZV_TOKEN");
  EXPECT_EQ(make(unchanged)->rdzv_token, std::nullopt);
  EXPECT_FALSE(make([](RawOptions& raw) { raw.rdzv_token = " "; }));
  EXPECT_FALSE(make([](RawOptions& raw) { raw.rdzv_token_file = "absent"; }));
}

TEST(ExitBarrier, IsBounded) {
  using std::chrono::seconds;
  EXPECT_EQ(make(unchanged)->exit_barrier_timeout, seconds(300));
  EXPECT_EQ(make([](RawOptions& raw) { raw.exit_barrier_timeout = 0; })->exit_barrier_timeout,
            seconds(0));
  EXPECT_FALSE(make([](RawOptions& raw) { raw.exit_barrier_timeout = -1; }));
  Machine machine;
  machine.env["TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT"] = "7";
  EXPECT_EQ(make(unchanged, machine)->exit_barrier_timeout, seconds(7));
  EXPECT_EQ(
      make([](RawOptions& raw) { raw.exit_barrier_timeout = 8; }, machine)->exit_barrier_timeout,
      seconds(8));
  machine.env["TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT"] = "soon";
  EXPECT_FALSE(make(unchanged, machine));
}

}  // namespace
}  // namespace lockstep::launch
