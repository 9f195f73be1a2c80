#include "machine/lease_terms.h"

#include "cloud/table/machine_endings.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::machine {
namespace {

nlohmann::json over_the_wire(const nlohmann::ordered_json& json) {
  return codec::parse_json(codec::print_json(json));
}

LeaseTerms some_terms() {
  return {.ends_ms = 1'700'000'600'000,
          .now_ms = 1'700'000'000'000,
          .idle_s = 90,
          .ending = *cloud::table::find_ending("runpod"),
          .notice = NoticeSource::token_and_poll,
          .metadata = "http://127.0.0.1:1"};
}

TEST(LeaseTerms, ComeBackAsTheyWere) {
  const auto terms = terms_from_json(over_the_wire(to_json(some_terms())));
  ASSERT_TRUE(terms) << terms.error().message;
  EXPECT_EQ(terms->ends_ms, 1'700'000'600'000);
  EXPECT_EQ(terms->now_ms, 1'700'000'000'000);
  EXPECT_EQ(terms->idle_s, 90);
  EXPECT_EQ(terms->ending, *cloud::table::find_ending("runpod"));
  EXPECT_EQ(terms->notice, NoticeSource::token_and_poll);
  EXPECT_EQ(terms->metadata, "http://127.0.0.1:1");
}

TEST(LeaseTerms, ThatMakeNoSenseAreRefused) {
  const auto with = [](const char* name, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json json = to_json(some_terms());
    json[name] = value;
    return static_cast<bool>(terms_from_json(over_the_wire(json)));
  };
  EXPECT_TRUE(with("idle_s", 0));
  EXPECT_FALSE(with("ends_ms", "soon"));
  EXPECT_FALSE(with("ends_ms", INT64_MAX));
  EXPECT_FALSE(with("now_ms", INT64_MIN));
  EXPECT_FALSE(with("now_ms", 0));
  EXPECT_FALSE(with("idle_s", -2));
  EXPECT_FALSE(with("ending", "explode"));
  EXPECT_FALSE(with("notice", "perhaps"));
  EXPECT_FALSE(terms_from_json(nlohmann::json::array()));
}

TEST(LeaseState, ComesBackAsItWas) {
  LeaseState state{.phase = LeaseState::Phase::stopping_jobs,
                   .left_ms = 1,
                   .idle_ms = 2,
                   .idle_limit_ms = 3,
                   .held_ms = 4,
                   .jobs = 5,
                   .sessions = 6,
                   .gpu_percent = 7,
                   .watched = true,
                   .sudo = false,
                   .notice = "terminate",
                   .notice_ms = 8,
                   .why = "w"};
  const auto again = lease_state_from_json(over_the_wire(to_json(state)));
  ASSERT_TRUE(again);
  EXPECT_EQ(codec::print_json(to_json(*again)), codec::print_json(to_json(state)));
  EXPECT_FALSE(lease_state_from_json(codec::parse_json(R"({"phase": "?"})")));
}

}  // namespace
}  // namespace lockstep::machine
