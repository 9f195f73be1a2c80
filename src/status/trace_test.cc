#include "status/trace.h"

#include "codec/json.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

namespace lockstep::status {
namespace {

using Kind = JobEventKind;

JobEvent event_at(std::int64_t ms, Kind kind, std::int64_t number, std::optional<int> rank = {}) {
  JobEvent event{.time_ms = ms,
                 .kind = kind,
                 .agent = "a",
                 .number = number,
                 .attempt = 1,
                 .node = "n1",
                 .rank = rank};
  if (kind == Kind::ranks_started) event.numbers = {{"first_rank", 4}, {"ranks", 2}};
  return event;
}

// Checks Perfetto's rule for complete events: on one track, two spans are apart or one lies inside
// the other. Returns the spans by name.
std::map<std::string, std::pair<std::int64_t, std::int64_t>> checked(const std::string& text) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> spans;
  std::map<std::pair<int, int>, std::vector<std::int64_t>> ends;  // of open spans, by track
  const auto trace = codec::parse_json(text, {.bytes = 64UL << 20});
  EXPECT_TRUE(trace["traceEvents"].is_array());
  for (const auto& line : trace["traceEvents"]) {
    EXPECT_TRUE(line.contains("name") && line.contains("ph") && line.contains("pid"));
    if (line["ph"] != "X") continue;
    const auto begin = line["ts"].get<std::int64_t>();
    const auto end = begin + line["dur"].get<std::int64_t>();
    auto& open = ends[{line["pid"].get<int>(), line["tid"].get<int>()}];
    while (!open.empty() && open.back() <= begin && !(begin == end && open.back() == begin))
      open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(end, open.back()) << text;
    }
    EXPECT_GE(end, begin);
    open.push_back(end);
    spans[line["name"].get<std::string>()] = {begin / 1000, end / 1000};
  }
  return spans;
}

TEST(TraceOfAJob, HasSpansForNodeAndRanks) {
  const auto spans = checked(trace_json({
      event_at(1000, Kind::started, 1),
      event_at(1001, Kind::rendezvous_begun, 2),
      event_at(1500, Kind::round_formed, 3),
      event_at(1510, Kind::ranks_started, 4),
      event_at(2000, Kind::first_output, 5, 4),
      event_at(5000, Kind::training, 6),
      event_at(9000, Kind::hung, 7),
      event_at(9500, Kind::failed, 8, 5),
      event_at(9500, Kind::stopping, 9),
      event_at(9900, Kind::rank_ended, 10, 4),
      event_at(9901, Kind::workers_ended, 11),
      event_at(9950, Kind::ended, 12),
  }));
  using Span = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(spans.at("run"), Span(1000, 9950));
  EXPECT_EQ(spans.at("rendezvous"), Span(1001, 1500));
  EXPECT_EQ(spans.at("attempt 1"), Span(1510, 9901));
  EXPECT_EQ(spans.at("start"), Span(1510, 5000));
  EXPECT_EQ(spans.at("training"), Span(5000, 9000));
  EXPECT_EQ(spans.at("hung"), Span(9000, 9500));
  EXPECT_EQ(spans.at("stopping"), Span(9500, 9901));
  EXPECT_EQ(spans.at("rank 4"), Span(1510, 9900));
  EXPECT_EQ(spans.at("rank 5"), Span(1510, 9500));
}

TEST(TraceOfAJob, RunsAndNodesAreProcesses) {
  JobEvent other = event_at(50, Kind::ranks_started, 1);
  other.node = "n2";
  JobEvent again = event_at(60, Kind::ranks_started, 1);
  again.agent = "b";
  const std::string text = trace_json({other, again, event_at(10, Kind::ranks_started, 1)});
  checked(text);
  for (const char* process : {"\"pid\":1,", "\"pid\":2,", "\"pid\":3,"})
    EXPECT_NE(text.find(process), std::string::npos) << process;
  EXPECT_EQ(trace_json({}), R"({"displayTimeUnit":"ms","traceEvents":[]})");
}

TEST(TraceOfAJob, NestsWhateverTheEventsAre) {
  std::mt19937 random(7);
  const auto below = [&random](int limit) { return static_cast<int>(random() % limit); };
  for (int run = 0; run < 300; ++run) {
    std::vector<JobEvent> events;
    for (int i = 0; i < 40; ++i) {
      events.push_back(event_at(1000 + below(30), static_cast<Kind>(below(kEventWords.size())), i,
                                below(2) == 0 ? std::optional<int>(3 + below(4)) : std::nullopt));
      if (below(9) == 0)
        events.back().numbers = {{"first_rank", -5e30},
                                 {"ranks", run % 30 == 0 ? 1e30 : below(40)}};
    }
    checked(trace_json(events));
  }
}

TEST(TraceOfAJob, AFewEventsCannotAskForEndlessRanks) {
  std::vector<JobEvent> events;
  const auto add = [&events](int count) {
    for (int i = 0; i < count; ++i) {
      events.push_back(event_at(1000, Kind::ranks_started, i + 1));
      events.back().node = std::to_string(events.size());
      events.back().numbers = {{"first_rank", 0}, {"ranks", 1e9}};
    }
  };
  add(2);
  const std::size_t size = trace_json(events, 5000).size();
  add(100);
  EXPECT_LT(trace_json(events, 5000).size(), 2 * size);
}

}  // namespace
}  // namespace lockstep::status
