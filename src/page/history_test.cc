#include "page/history.h"

#include "codec/json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::page {
namespace {

constexpr std::int64_t kBegin = 1'789'999'980'000;  // a multiple of every width
constexpr auto kCpu = static_cast<std::size_t>(Measure::cpu);
constexpr auto kSteps = static_cast<std::size_t>(Measure::steps_per_s);

Sample moment(std::int64_t seconds, float cpu,
              looks::VerdictState state = looks::VerdictState::training) {
  Sample sample{.time_ms = kBegin + seconds * 1000, .state = static_cast<std::uint8_t>(state)};
  sample.bands[kCpu] = {cpu, cpu, cpu};
  return sample;
}

TEST(History, ASampleSpansTheRanks) {
  looks::NodeRows rows{.state = "waiting"};
  rows.rows = {{.rank = 0, .state = "training", .cpu = 1, .memory_bytes = 100},
               {.rank = 1, .state = "waiting", .cpu = 3, .waiting_share = 0.5, .gpu_share = 0.75},
               {.rank = 2, .state = "gone", .cpu = 9}};
  const Sample sample = sample_of(rows, 5);
  EXPECT_EQ(sample.ranks, 2);
  EXPECT_EQ(static_cast<looks::VerdictState>(sample.state), looks::VerdictState::waiting);
  EXPECT_EQ(sample.bands[kCpu].mean, 2);
  EXPECT_EQ(sample.bands[kCpu].least, 1);
  EXPECT_EQ(sample.bands[kCpu].most, 3);
  EXPECT_EQ(sample.bands[static_cast<std::size_t>(Measure::waiting)].mean, 0.5);
  EXPECT_FLOAT_EQ(sample.bands[static_cast<std::size_t>(Measure::gpu)].mean, 0.75F);
  EXPECT_TRUE(std::isnan(sample.bands[kSteps].mean));
}

TEST(History, ABucketHasMeanExtremesAndTheWorstState) {
  Series series(10'000, 4);
  for (int second = 0; second < 10; ++second)
    series.add(moment(second, static_cast<float>(second),
                      second == 3 ? looks::VerdictState::hung : looks::VerdictState::training));
  series.add(moment(10, 7));
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series.at(0).time_ms, kBegin);
  EXPECT_FLOAT_EQ(series.at(0).bands[kCpu].mean, 4.5);
  EXPECT_EQ(series.at(0).bands[kCpu].least, 0);
  EXPECT_EQ(series.at(0).bands[kCpu].most, 9);
  EXPECT_EQ(static_cast<looks::VerdictState>(series.at(0).state), looks::VerdictState::hung);
  EXPECT_EQ(static_cast<looks::VerdictState>(series.at(1).state), looks::VerdictState::training);
  EXPECT_EQ(series.at(1).bands[kCpu].mean, 7);
}

TEST(History, KeepsTheNewest) {
  Series series(1000, 3);
  for (int second = 0; second < 8; ++second)
    series.add(moment(second, static_cast<float>(second)));
  ASSERT_EQ(series.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(series.at(i).time_ms, kBegin + (5 + static_cast<std::int64_t>(i)) * 1000);
  EXPECT_EQ(series.at(2).bands[kCpu].mean, 7);
}

TEST(History, AClockThatIsSetBackKeepsTheOrder) {
  Series series(1000, 10);
  series.add(moment(100, 1));
  series.add(moment(50, 3));
  series.add(moment(101, 5));
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series.at(0).bands[kCpu].mean, 2);
  EXPECT_EQ(series.at(1).bands[kCpu].mean, 5);
}

TEST(History, ADayFitsAndStaysSmall) {
  History history;
  for (int second = 0; second < 2 * 86'400; ++second)
    history.add(moment(second, 1));
  EXPECT_EQ(history.series_for(600'000).width_ms(), 1000);
  EXPECT_EQ(history.series_for(7'200'000).width_ms(), 10'000);
  const Series& day = history.series_for(86'400'000);
  EXPECT_EQ(day.width_ms(), 60'000);
  EXPECT_EQ(day.size(), 1440U);
  EXPECT_EQ(day.at(0).time_ms, kBegin + 86'400'000);
  EXPECT_LT(sizeof(Sample) * (600 + 720 + 1440), 256U << 10);
}

TEST(History, JsonHasNullForTheUnknown) {
  Series series(1000, 3);
  series.add(moment(0, 0.123456F));
  const auto json = codec::parse_json(series_json(series));
  EXPECT_EQ(json["width_ms"], 1000);
  EXPECT_EQ(json["time_ms"][0], kBegin);
  EXPECT_NEAR(json["cpu"]["mean"][0].get<double>(), 0.1235, 1e-9);
  EXPECT_TRUE(json["steps_per_s"]["mean"][0].is_null());
  EXPECT_EQ(json["state"][0], static_cast<int>(looks::VerdictState::training));
}

}  // namespace
}  // namespace lockstep::page
