#include "rendezvous/etcd/etcd_legacy_state.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::etcd {
namespace {
using Status = LegacyState::Status;

TEST(EtcdLegacyState, ReadsWhatTorchrunWrites) {
  const auto setup = decode_legacy_state(R"({"status": "setup"})");
  ASSERT_TRUE(setup);
  EXPECT_EQ(setup->status, Status::setup);
  const auto joinable =
      decode_legacy_state(R"({"status": "joinable", "version": "3", "participants": [0, 1]})");
  ASSERT_TRUE(joinable);
  EXPECT_EQ(joinable->status, Status::joinable);
  EXPECT_EQ(joinable->version, "3");
  EXPECT_EQ(joinable->participants, 2U);
  const auto final = decode_legacy_state(
      R"({"status": "final", "version": "3", "participants": [0, 1], "keep_alives":)"
      R"( ["/p/run_a/rdzv/v_3/rank_1", "/p/run_a/rdzv/v_3/rank_0"], "num_workers_waiting": 2})");
  ASSERT_TRUE(final);
  EXPECT_EQ(final->waiting, 2U);
  EXPECT_EQ(final->keep_alives.size(), 2U);
  EXPECT_FALSE(final->all_ours());
}

TEST(EtcdLegacyState, WritesWhatItReads) {
  LegacyState state{.status = Status::frozen, .version = "12", .participants = 2};
  state.keep_alives = {"/x/rank_0"};
  state.agents[1] = {"trn-1", "id-1"};
  EXPECT_EQ(decode_legacy_state(encode_legacy_state(state)), state);
  state.status = Status::final;
  state.waiting = 3;
  EXPECT_EQ(decode_legacy_state(encode_legacy_state(state)), state);
  EXPECT_EQ(encode_legacy_state({}), R"({"status":"setup"})");
  EXPECT_EQ(encode_legacy_state({.status = Status::final, .version = "1", .participants = 1}),
            R"({"keep_alives":[],"num_workers_waiting":0,"participants":[0],)"
            R"("status":"final","version":"1"})");
}

TEST(EtcdLegacyState, CarriesAlongWhatItDoesNotKnow) {
  auto state = decode_legacy_state(
      R"({"status": "joinable", "version": "1", "participants": [], "epoch": [7, "x"]})");
  ASSERT_TRUE(state);
  ++state->participants;
  EXPECT_EQ(encode_legacy_state(*state),
            R"({"epoch":[7,"x"],"participants":[0],"status":"joinable","version":"1"})");
}

TEST(EtcdLegacyState, ANameThatNobodyCouldReadIsLeftOut) {
  const auto state = decode_legacy_state(
      R"({"status":"joinable","version":"1","participants":[0,1],"lockstep":{"0":["a","id"],"1":[")" +
      std::string(2000, 'a') + R"(","id"]}})");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->agents.size(), 1U);
}

TEST(EtcdLegacyState, AClosedOneNeedsNothingElse) {
  const auto closed = decode_legacy_state(R"({"status": "closed"})");
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->status, Status::closed);
}

TEST(EtcdLegacyState, RefusesNonsense) {
  for (const char* text :
       {"", "[]", "{}", R"({"status": "odd"})", R"({"status": 1})", R"({"status": "joinable"})",
        R"({"status": "final", "version": 3, "participants": []})",
        R"({"status": "final", "version": "../1", "participants": []})",
        R"({"status": "final", "version": "1", "participants": 2})",
        R"({"status": "final", "version": "1", "participants": [0], "keep_alives": ["a", "b"]})",
        R"({"status": "final", "version": "1", "participants": [0], "keep_alives": [1]})",
        R"({"status": "final", "version": "1", "participants": [0], "num_workers_waiting": -1})"}) {
    const auto state = decode_legacy_state(text);
    ASSERT_FALSE(state) << text;
    EXPECT_EQ(code_of(state), Errc::corrupt);
  }
}

// The JSON printer recurses: such a text once crashed the agent.
TEST(EtcdLegacyState, RefusesWhatIsNestedTooDeep) {
  for (const std::size_t depth : {70U, 130'000U}) {
    const std::string text = R"({"status": "setup", "other": )" + std::string(depth, '[') +
                             std::string(depth, ']') + "}";
    EXPECT_FALSE(decode_legacy_state(text));
  }
  EXPECT_TRUE(decode_legacy_state(R"({"status": "setup", "other": [[[[[[[[1]]]]]]]]})"));
}

TEST(EtcdLegacyState, OurOwnNotesMayBeAnything) {
  const auto state = decode_legacy_state(
      R"({"status": "joinable", "version": "1", "participants": [0, 1],)"
      R"( "lockstep": {"0": ["a", "b"], "1": "c", "7": ["d", "e"], "x": ["f", "g"]}})");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->agents.size(), 1U);
  EXPECT_EQ(state->agents.at(0).host, "a");
}

}  // namespace
}  // namespace lockstep::rendezvous::etcd
