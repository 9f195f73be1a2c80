#include "rendezvous/rank_exchange.h"

#include "base/error_testing.h"
#include "io/loop.h"
#include "io/loop_testing.h"
#include "rendezvous/exit_barrier.h"
#include "rendezvous/tcp_key_value.h"
#include "store/server.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous {
namespace {
using std::chrono::milliseconds;

TEST(RankTexts, AsPyTorchWritesThem) {
  const RoleInfo info{.role = "default", .rank = 1, .local_world_size = 2};
  EXPECT_EQ(encode_role_info(info), R"({"role": "default", "rank": 1, "local_world_size": 2})");
  EXPECT_EQ(decode_role_info(encode_role_info(info)).value(), info);
  const RoleInfo odd{.role = "a\"\n\xc3\xa9", .rank = 0, .local_world_size = 8};
  EXPECT_EQ(encode_role_info(odd), R"({"role": "a\"\n\u00e9", "rank": 0, "local_world_size": 8})");
  EXPECT_EQ(decode_role_info(encode_role_info(odd)).value(), odd);
  EXPECT_EQ(encode_assigned_ranks({2, 4, 2, 4}), "[2, 4, 2, 4]");
  EXPECT_EQ(decode_assigned_ranks("[2,4,1,3]").value(), (AssignedRanks{2, 4, 1, 3}));
}

TEST(RankTexts, Nonsense) {
  for (const char* bad :
       {"", "{", "[]", "{}", "null", R"({"role": 1, "rank": 0, "local_world_size": 1})",
        R"({"role": "a", "rank": -1, "local_world_size": 1})",
        R"({"role": "a", "rank": 0, "local_world_size": 1e9})", R"({"role": "a", "rank": 0})"})
    EXPECT_EQ(code_of(decode_role_info(bad)), Errc::corrupt) << bad;
  for (const char* bad : {"", "[1,2,3]", "[1,2,3,4,5]", "[1,2,3,-4]", "[1,2,3,4.5]",
                          "[1,2,3,99999999999]", "[1,2,3,18446744073709551615]", "\xff"})
    EXPECT_EQ(code_of(decode_assigned_ranks(bad)), Errc::corrupt) << bad;
}

TEST(AssignRanks, UnequalNodesAndRoles) {
  const std::vector<RoleInfo> infos = {{"a", 0, 1}, {"b", 1, 3}, {"a", 2, 2}};
  const std::vector<AssignedRanks> expected = {{0, 6, 0, 3}, {1, 6, 0, 3}, {4, 6, 1, 3}};
  EXPECT_EQ(assign_ranks(infos).value(), expected);
}

TEST(AssignRanks, MoreWorkersThanThereAreRanks) {
  std::vector<RoleInfo> infos(2048, {"a", 0, 1 << 20});
  const auto made = assign_ranks(infos);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("node rank 2047 claims"), std::string::npos);
  infos.back().local_world_size -= 1;
  EXPECT_EQ(assign_ranks(infos).value().back().world_size, INT32_MAX);
}

class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() : server(store::Server::listen(loop, {.host = "127.0.0.1"}).value()) {
    for (auto& client : clients) {
      client =
          std::make_unique<TcpKeyValue>(loop, store::AsyncClientOptions{.port = server->port()});
      client->connect([](const Result<void>& done) { EXPECT_TRUE(done); });
    }
  }
  RoundResult round(std::size_t rank, std::size_t world = 3) const {
    return {.round = 4, .rank = rank, .world = world, .nodes = {}, .prefix = "p.4/"};
  }
  template <class Fact>
  void until(Fact fact) {
    ASSERT_TRUE(io::run_until(loop, fact));
  }

  io::Loop loop;
  std::unique_ptr<store::Server> server;
  std::unique_ptr<TcpKeyValue> clients[3];
};

TEST_F(ExchangeTest, ThreeNodesAgree) {
  std::optional<Result<Assignment>> got[3];
  for (const std::size_t rank : {2U, 1U, 0U}) {
    RankExchange exchange{.round = round(rank),
                          .own = {.local_world_size = static_cast<std::int64_t>(rank) + 1},
                          .offered = {}};
    if (rank == 0) exchange.offered = StorePlace{"10.0.0.1", 4711};
    exchange_ranks(*clients[rank], exchange,
                   [&got, rank](Result<Assignment> made) { got[rank] = std::move(made); });
  }
  until([&] { return got[0] && got[1] && got[2]; });
  for (const auto& made : got) {
    ASSERT_TRUE(made.value()) << made->error().message;
    EXPECT_EQ((*made)->workers, (StorePlace{"10.0.0.1", 4711}));
  }
  EXPECT_EQ((*got[0])->ranks, (AssignedRanks{0, 6, 0, 6}));
  EXPECT_EQ((*got[1])->ranks, (AssignedRanks{1, 6, 1, 6}));
  EXPECT_EQ((*got[2])->ranks, (AssignedRanks{3, 6, 3, 6}));
  EXPECT_EQ(server->engine().get("/p.4/torchelastic/role_info/2"),
            R"({"role": "default", "rank": 2, "local_world_size": 3})");
}

// torchrun's rank 0 publishes its store only in its first round, here round 2, and hands out ranks
// in all.
TEST_F(ExchangeTest, TheStoreOfATorchrunAgentThatSaidItOnce) {
  server->set("/p.3/MASTER_ADDR", "10.0.0.9");
  server->set("/p.3/MASTER_PORT", "9");
  server->set("/p.2/MASTER_ADDR", "10.0.0.1");
  server->set("/p.2/MASTER_PORT", "4711");
  server->set("/p.1/MASTER_ADDR", "10.0.0.1");
  server->set("/p.1/MASTER_PORT", "1");
  server->set("/p.4/torchelastic/assigned_ranks/1", "[1, 2, 1, 2]");
  for (const bool stays : {true, false}) {
    RankExchange exchange{.round = round(1, 2), .own = {}, .offered = {}};
    exchange.round.nodes = {{stays ? "10.0.0.1" : "10.0.0.5", 7, 0},
                            {"10.0.0.2", 8, local_id_of({})}};
    exchange.prefix_of = [](std::int64_t number) { return "p." + std::to_string(number) + "/"; };
    std::optional<Result<Assignment>> got;
    exchange_ranks(*clients[1], exchange, [&](Result<Assignment> made) { got = std::move(made); });
    until([&] { return got.has_value(); });
    ASSERT_EQ(got->has_value(), stays);
    if (stays) {
      EXPECT_EQ((*got)->workers, (StorePlace{"10.0.0.1", 4711}));
    } else {
      EXPECT_NE(got->error().message.find("10.0.0.5"), std::string::npos);
    }
  }
}

TEST_F(ExchangeTest, NonsenseAndSilence) {
  std::optional<Result<Assignment>> bad;
  std::optional<Result<Assignment>> silent;
  server->set("/p.4/torchelastic/role_info/1", "{}");
  exchange_ranks(*clients[0], {.round = round(0, 2), .own = {}, .offered = StorePlace{"a", 1}},
                 [&](Result<Assignment> made) { bad = std::move(made); });
  exchange_ranks(*clients[1],
                 {.round = round(2), .own = {}, .offered = {}, .timeout = milliseconds(50)},
                 [&](Result<Assignment> made) { silent = std::move(made); });
  until([&] { return bad && silent; });
  EXPECT_EQ(bad->error().code, Errc::corrupt);
  EXPECT_NE(bad->error().message.find("node rank 1"), std::string::npos) << bad->error().message;
  EXPECT_EQ(silent->error().code, Errc::timeout);
}

RoleInfo launching(std::string program, std::string host) {
  RoleInfo info;
  info.restarts = 0;
  info.max_restarts = 2;
  info.launched = {std::move(program), 1, false, "1.0"};
  info.host = std::move(host);
  return info;
}

TEST(RankTexts, WhatIsLaunchedComesBack) {
  const RoleInfo info = launching("tr\"ain.py", "trn-1");
  EXPECT_EQ(decode_role_info(encode_role_info(info)).value(), info);
  const std::string start =
      R"({"role": "a", "rank": 0, "local_world_size": 1, "lockstep_launches": )";
  for (const char* bad : {"1}", "[]}", R"(["a", -1, false, "1"]})", R"([1, 1, false, "1"]})"})
    EXPECT_TRUE(decode_role_info(start + bad).value().launched.name.empty()) << bad;
}

TEST_F(ExchangeTest, AnotherProgramIsNamedToAllAgentsOfOurs) {
  std::optional<Result<Assignment>> got[2];
  for (const std::size_t rank : {1U, 0U}) {
    RankExchange exchange{.round = round(rank, 2),
                          .run_id = "job",
                          .own = rank == 0 ? launching("train.py", "a") : launching("eval.py", "b"),
                          .offered = {}};
    if (rank == 0) exchange.offered = StorePlace{"10.0.0.1", 4711};
    exchange_ranks(*clients[rank], exchange,
                   [&got, rank](Result<Assignment> made) { got[rank] = std::move(made); });
  }
  until([&] { return got[0] && got[1]; });
  for (const auto& made : got) {
    ASSERT_FALSE(*made);
    EXPECT_EQ(made->error().message,
              "b launches eval.py, a launches train.py, both as role 'default' of the job 'job'");
    EXPECT_FALSE(made->error().hint.empty());
  }
}

TEST_F(ExchangeTest, OneThatComesLaterComparesItselfAndDifferencesAreTold) {
  std::optional<Result<Assignment>> got[2];
  for (const std::size_t rank : {1U, 0U}) {
    RankExchange exchange{.round = round(rank, 2),
                          .run_id = "job",
                          .own = launching("train.py", rank == 0 ? "a" : "b"),
                          .offered = {}};
    if (rank == 0) exchange.offered = StorePlace{"10.0.0.1", 4711};
    if (rank == 1) exchange.own.launched.arguments = 2;
    exchange_ranks(*clients[rank], exchange,
                   [&got, rank](Result<Assignment> made) { got[rank] = std::move(made); });
  }
  until([&] { return got[0] && got[1]; });
  for (const auto& made : got)
    EXPECT_EQ((*made)->notes, (std::vector<std::string>{
                                  "train.py is launched with different numbers of arguments: 1 "
                                  "(a), 2 (b)"}));
  for (const bool same : {true, false}) {
    std::optional<Status> compared;
    compare_with_round(*clients[2], "p.4/", launching(same ? "train.py" : "eval.py", "c"), "job",
                       [&](Status outcome) { compared = std::move(outcome); });
    until([&] { return compared.has_value(); });
    ASSERT_EQ(compared->has_value(), same);
  }
  until([&] { return server->engine().get("/p.4/lockstep/turned_away").has_value(); });
  EXPECT_EQ(server->engine().get("/p.4/lockstep/turned_away"),
            "c launches eval.py, a launches train.py, both as role 'default' of the job 'job'");
}

TEST_F(ExchangeTest, ExitBarrier) {
  std::optional<Result<void>> ended[3];
  const auto enter = [&](std::size_t rank, milliseconds timeout) {
    enter_exit_barrier(
        *clients[rank], round(rank), timeout, [] { return true; },
        [&ended, rank](Result<void> done) { ended[rank] = std::move(done); });
  };
  enter(0, std::chrono::seconds(20));
  enter(1, milliseconds(50));
  until([&] { return ended[1].has_value(); });
  EXPECT_EQ(ended[1]->error().code, Errc::timeout);
  EXPECT_FALSE(ended[0]);
  enter(2, std::chrono::seconds(20));
  until([&] { return ended[0] && ended[2]; });
  EXPECT_TRUE(*ended[0]);
  EXPECT_TRUE(*ended[2]);
}

}  // namespace
}  // namespace lockstep::rendezvous
