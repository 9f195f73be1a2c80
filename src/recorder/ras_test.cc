#include "recorder/ras.h"

#include <gtest/gtest.h>

namespace lockstep::recorder {
namespace {

constexpr std::string_view kReport = R"({
  "nccl_version": "2.28.9", "timestamp": "2026-01-01",
  "communicators": [{"hash": "0x1f", "secondary_hash": "0x2", "size": 4,
    "ranks": [
      {"rank": 0, "host": "n1", "pid": 10, "cuda_dev": 0, "status": {"init_state": 0},
       "collective_counts": {"AllReduce": 1742, "Broadcast": 3}},
      {"rank": 1, "host": "n1", "pid": 11, "collective_counts": {"AllReduce": 1741, "Broadcast": 3}}],
    "missing_ranks": [
      {"rank": 2, "host": "n2", "pid": 12, "status": {"unresponsive": true, "considered_dead": false}}
      {"rank": 3, "host": "n2\u001b", "pid": 13 "status": {"unresponsive": true, "considered_dead": true}}]}]})";

TEST(Ras, ReportWithForgottenCommas) {
  const RasReport report = read_ras_report(kReport).value();
  EXPECT_EQ(report.nccl_version, "2.28.9");
  ASSERT_EQ(report.communicators.size(), 1U);
  EXPECT_EQ(report.communicators[0].hash, "0x1f/0x2");
  ASSERT_EQ(report.communicators[0].ranks.size(), 4U);
  EXPECT_EQ(ras_sentences(report),
            (std::vector<std::string>{
                "communicator 0x1f/0x2: rank 2 (pid 12 on n2) does not answer NCCL's RAS",
                "communicator 0x1f/0x2: rank 3 (pid 13 on n2\\x1b) is considered dead by NCCL",
                "communicator 0x1f/0x2: AllReduce: rank 1 is at 1741, rank 0 at 1742"}));
}

TEST(Ras, EqualCountsSayNothing) {
  const auto report = read_ras_report(R"({"communicators":[{"hash":31,"ranks":[
    {"rank":0,"collective_counts":{"AllReduce":5}},{"rank":1,"collective_counts":{"AllReduce":5}}]}]})");
  EXPECT_EQ(report->communicators.at(0).hash, "0x1f");
  EXPECT_EQ(ras_sentences(*report), std::vector<std::string>{});
}

TEST(Ras, CommasOnlyWhereAValueFollowsAValue) {
  EXPECT_EQ(with_commas(R"([{"a":1}{"b":2}])"), R"([{"a":1},{"b":2}])");
  EXPECT_EQ(with_commas(R"({"a":1 "b":"x y" "c":[1 2]})"), R"({"a":1 ,"b":"x y" ,"c":[1 ,2]})");
  EXPECT_EQ(with_commas(R"({"a":1"b":true})"), R"({"a":1,"b":true})");
  for (const std::string good : {R"({"a": [1, 2.5e3, "x \" } {", null], "b": {}})", "", "\"cut"})
    EXPECT_EQ(with_commas(good), good);
  EXPECT_FALSE(read_ras_report("").has_value());
  EXPECT_FALSE(read_ras_report("Job summary\n===").has_value());
}

TEST(Ras, Talk) {
  RasTalk talk(5);
  EXPECT_EQ(talk.out, "CLIENT PROTOCOL 2\n");
  ASSERT_TRUE(talk.feed("SERVER PROT").has_value());
  ASSERT_TRUE(talk.feed("OCOL 2\nOK\nOK\n{\"a\"").has_value());
  EXPECT_EQ(talk.out, "CLIENT PROTOCOL 2\nTIMEOUT 5\nSET FORMAT json\nVERBOSE STATUS\n");
  EXPECT_TRUE(talk.json());
  ASSERT_TRUE(talk.feed(":1}\n").has_value());
  EXPECT_EQ(talk.finish().value(), "{\"a\":1}\n");
}

TEST(Ras, TalkWithOlderNcclAndWithStrangers) {
  RasTalk old(5);
  ASSERT_TRUE(old.feed("SERVER PROTOCOL 2\nOK\nERROR: unknown\nJob summary\n").has_value());
  EXPECT_FALSE(old.json());
  EXPECT_EQ(old.finish().value(), "Job summary\n");
  RasTalk web(5);
  EXPECT_EQ(web.feed("HTTP/1.1 400\r\n").error().message, "not a RAS port: 'HTTP/1.1 400'");
  RasTalk flood(5);
  EXPECT_FALSE(flood.feed(std::string(2000, 'x')).has_value());
  RasTalk silent(5);
  EXPECT_FALSE(silent.finish().has_value());
  RasTalk endless(5);
  ASSERT_TRUE(endless.feed("SERVER PROTOCOL 2\nOK\nOK\n").has_value());
  EXPECT_FALSE(endless.feed(std::string(RasTalk::kMostReport + 1, 'x')).has_value());
}

}  // namespace
}  // namespace lockstep::recorder
