// The order of the reports in the answer, its bound, and what counts while nodes leave or join.
#include "rendezvous/hub/report_exchange.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;

constexpr Time kStart{1h};

TellReport report(int rank, std::string text = "x", std::uint32_t timeout_ms = 10'000) {
  return {timeout_ms, {"host", rank, std::move(text)}};
}

std::vector<int> answered(const ReportExchange& exchange) {
  std::vector<int> ranks;
  const auto frame = parse_frame(std::string_view(*exchange.answer()).substr(4));
  for (const Report& told : std::get<Reports>(*frame).reports)
    ranks.push_back(told.group_rank);
  return ranks;
}

TEST(ReportExchange, TheFirstFailureComesFirstThenTheRanks) {
  ReportExchange exchange;
  exchange.failed(2);
  exchange.failed(3);
  for (const int rank : {3, 0, 2, 1})
    exchange.tell(rank, report(rank), kStart);
  EXPECT_EQ(exchange.close(), (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(answered(exchange), (std::vector<int>{2, 0, 1, 3}));
}

TEST(ReportExchange, TheFirstReportSetsTheDeadlineForTheAnswer) {
  ReportExchange exchange;
  EXPECT_FALSE(exchange.until());
  exchange.tell(1, report(1, "x", 10'000), kStart);
  exchange.tell(0, report(0, "x", 1'000), kStart);
  EXPECT_EQ(exchange.until(), kStart + 8s);
  EXPECT_EQ(exchange.answer(), nullptr);
  exchange.close();
  EXPECT_FALSE(exchange.until());
}

TEST(ReportExchange, ANodeCountsOnceAndItsLastReportIsInTheAnswer) {
  ReportExchange exchange;
  exchange.tell(0, report(7), kStart);
  exchange.tell(0, report(8), kStart);
  EXPECT_FALSE(exchange.complete(2));
  exchange.close();
  EXPECT_EQ(answered(exchange), std::vector<int>{8});
}

TEST(ReportExchange, ANodeThatLeavesIsInTheAnswerAndDoesNotWaitForIt) {
  ReportExchange exchange;
  exchange.tell(1, report(1), kStart);
  exchange.leave(1);
  exchange.leave(2);  // has told nothing
  EXPECT_FALSE(exchange.complete(1));
  exchange.tell(0, report(0), kStart);
  EXPECT_TRUE(exchange.complete(1));
  EXPECT_EQ(exchange.close(), std::set<int>{0});
  EXPECT_EQ(answered(exchange), (std::vector<int>{0, 1}));
}

TEST(ReportExchange, ANodeThatComesAndGoesLeavesOneReport) {
  ReportExchange exchange;
  for (const int turn : {7, 8, 9}) {
    exchange.tell(1, report(turn), kStart);
    exchange.leave(1);
  }
  exchange.close();
  EXPECT_EQ(answered(exchange), std::vector<int>{9});
}

TEST(ReportExchange, ANodeThatJoinsAgainHasToldNothing) {
  ReportExchange exchange;
  exchange.tell(0, report(0), kStart);
  exchange.tell(1, report(1), kStart);
  exchange.forget(1);
  EXPECT_FALSE(exchange.complete(2));
  EXPECT_EQ(exchange.close(), std::set<int>{0});
  EXPECT_EQ(answered(exchange), std::vector<int>{0});
}

TEST(ReportExchange, TheBoundOfAFrameNeverCutsTheFirstFailure) {
  ReportExchange exchange;
  exchange.failed(4);
  for (int rank = 0; rank < 5; ++rank)
    exchange.tell(rank, report(rank, std::string(kMaxReport, 'x')), kStart);
  exchange.close();
  EXPECT_EQ(answered(exchange), (std::vector<int>{4, 0, 1, 2}));
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
