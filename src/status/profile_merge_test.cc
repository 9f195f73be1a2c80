#include "status/profile_merge.h"

#include "codec/json.h"

#include <gtest/gtest.h>

namespace lockstep::status {
namespace {

// As libkineto writes one.
constexpr const char* kTrace = R"({
  "schemaVersion": 1,
  "deviceProperties": [ {"id": 0, "name": "traceEvents", "pid": 1} ],
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1791000000000000000,
  "traceEvents": [

  {
    "ph": "X", "cat": "cpu_op", "name": "aten::add \"pid\": 1, {", "pid": 4711, "tid": 4711,
    "ts": 12.345, "dur": 1.000
    ,"args": {
      "External id": 3, "pid": 5, "name": "x", "sizes": [[1, 2], []]
    }
  },
  { "ph": "s", "id": 7, "pid": 0, "tid": 7, "ts": 1.000, "cat": "ac2g", "name": "ac2g" },
  { "ph": "M", "name": "process_name", "ts": 1.000, "pid": 4711, "tid": 0,
    "args": { "name": "python" } },
  { "ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 9.000 }
  ],"traceName": "/tmp/x_4711.json" })";

std::string merged(const std::vector<std::string>& traces, std::size_t piece = 1UL << 20) {
  std::string out(merged_head());
  std::string base;
  bool first = true;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    MergedTrace trace(static_cast<int>(i) + 3, static_cast<int>(i), first);
    for (std::size_t at = 0; at < traces[i].size(); at += piece)
      EXPECT_TRUE(trace.feed(std::string_view(traces[i]).substr(at, piece), out));
    EXPECT_TRUE(trace.is_whole());
    first = !trace.has_events();
    base = trace.base();
  }
  return out + merged_tail(base);
}

bool is_trace(const std::string& text) {
  std::string out;
  MergedTrace trace(0, 0, true);
  return trace.feed(text, out) && trace.is_whole();
}

TEST(ProfileMerge, RanksDoNotShareProcessesOrArrows) {
  const auto json = codec::parse_json(merged({kTrace, kTrace}));
  ASSERT_TRUE(json.is_object());
  const auto& events = json["traceEvents"];
  ASSERT_EQ(events.size(), 8U);
  EXPECT_EQ(events[0]["pid"], 4711);
  EXPECT_EQ(events[4]["pid"], 10'004'711);
  EXPECT_EQ(events[4]["args"]["pid"], 5);
  EXPECT_EQ(events[4]["args"]["name"], "x");
  EXPECT_EQ(events[4]["name"], "aten::add \"pid\": 1, {");
  EXPECT_EQ(events[1]["id"], 7);
  EXPECT_EQ(events[5]["id"], 1'000'000'000'007);
  EXPECT_EQ(events[5]["pid"], 10'000'000);
  EXPECT_EQ(events[2]["args"]["name"], "rank 3: python");
  EXPECT_EQ(events[6]["args"]["name"], "rank 4: python");
  EXPECT_EQ(events[7]["pid"], "rank 4 ");
  EXPECT_EQ(json["baseTimeNanoseconds"], 1791000000000000000);
}

TEST(ProfileMerge, PiecesMakeNoDifference) {
  const std::string whole = merged({kTrace, kTrace});
  EXPECT_EQ(merged({kTrace, kTrace}, 1), whole);
  EXPECT_EQ(merged({kTrace, kTrace}, 7), whole);
}

TEST(ProfileMerge, ATraceMayHaveNoEvents) {
  const auto json =
      codec::parse_json(merged({R"({"traceEvents": []})", kTrace, "{\"traceEvents\":[]}"}));
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["traceEvents"].size(), 4U);
}

TEST(ProfileMerge, LongTextsPass) {
  const std::string name(100'000, 'n');
  const std::string trace =
      R"({"traceEvents": [{"pid": 1, "name": ")" + name + R"(", ")" + name + R"(": "pid"}]})";
  const auto json = codec::parse_json(merged({trace}, 999));
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["traceEvents"][0]["name"], name);
  EXPECT_EQ(json["traceEvents"][0][name], "pid");
}

TEST(ProfileMerge, WhatIsCutIsNoTrace) {
  const std::string trace = kTrace;
  for (std::size_t size = 0; size < trace.size(); ++size)
    EXPECT_FALSE(is_trace(trace.substr(0, size))) << size;
  EXPECT_TRUE(is_trace(trace + "\n"));
  for (const char* bad : {"[]", "{}", "null", "{\"traceEvents\": {}}", "{\"traceEvents\": [1]}",
                          "{\"traceEvents\": [[]]}", "{\"traceEvents\": []]",
                          "{\"traceEvents\": []}}", "{\"traceEvents\": [], \"traceEvents\": []}"})
    EXPECT_FALSE(is_trace(bad)) << bad;
  EXPECT_FALSE(is_trace("{\"traceEvents\": [{\"a\": " + std::string(1000, '[')));
}

// One rank's trace must not make the merged one invalid.
TEST(ProfileMerge, WhatIsNotJsonIsNoTrace) {
  const auto event_is_trace = [](const std::string& event) {
    return is_trace("{\"traceEvents\": [" + event + "]}");
  };
  for (const char* good :
       {"", R"({"a":-0.5e+10 , "b" : [ ] , "c":{ }, "d":[0,1E5,[true]],"":null})", "{},{}",
        R"({"a":"\\\"\/\b\f\n\r\t\u00Ff"})", "{\"\x7f\xc3\xa4\":false}"})
    EXPECT_TRUE(event_is_trace(good)) << good;
  for (const char* bad : {R"({"pid":1,,,"a" "b"})",
                          R"({"pid":nan})",
                          R"({"pid":1}{"x":2})",
                          "{},",
                          ",{}",
                          "{},,{}",
                          "{\"a\":\"\n\"}",
                          "{\"a\n\":1}",
                          R"({"a":1_0})",
                          R"({"a":01})",
                          R"({"a":1.})",
                          R"({"a":.5})",
                          R"({"a":+1})",
                          R"({"a":-})",
                          R"({"a":1e})",
                          R"({"a":True})",
                          R"({"a":1:2})",
                          R"({"a"})",
                          R"({"a":})",
                          R"({"a":1,})",
                          R"({,"a":1})",
                          R"({a:1})",
                          R"({1:1})",
                          R"({"a":[1,]})",
                          R"({"a":[,1]})",
                          R"({"a":[1 2]})",
                          R"({"a":[1:2]})",
                          R"({"a":{}{}})",
                          R"({"a" 1})",
                          R"({{}:1})",
                          R"({"a":"\q"})",
                          R"({"a":"\u00g0"})",
                          R"({"a":"b""c"})",
                          R"({"a":1"b":2})"})
    EXPECT_FALSE(event_is_trace(bad)) << bad;
  for (const char* bad :
       {"{\"traceEvents\": []} x", "{\"traceEvents\": []},", ",{\"traceEvents\": []}",
        R"({"baseTimeNanoseconds": 1_0, "traceEvents": []})"})
    EXPECT_FALSE(is_trace(bad)) << bad;
}

}  // namespace
}  // namespace lockstep::status
