// How a job went in the last 24 hours, for the charts of the status page. Bounded: three series of
// equal fields with buckets of 1 s, 10 s and 60 s, less than 256 KiB in all. Pure.
#pragma once

#include "looks/row.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::page {

// What one measure was over the ranks of a node, and over the moments of a bucket. NaN: not known.
struct Band {
  float mean = std::numeric_limits<float>::quiet_NaN();
  float least = std::numeric_limits<float>::quiet_NaN();
  float most = std::numeric_limits<float>::quiet_NaN();
};

enum class Measure { steps_per_s, cpu, memory, waiting, input, gpu };
inline constexpr std::array<std::string_view, 6> kMeasureWords = {"steps_per_s", "cpu",   "memory",
                                                                  "waiting",     "input", "gpu"};

// A moment, or all moments of a bucket.
struct Sample {
  std::int64_t time_ms = 0;  // unix time; of a bucket: its begin
  std::uint8_t state = 0;    // looks::VerdictState; of a bucket: the worst
  std::uint16_t ranks = 0;   // that have not ended; of a bucket: the fewest
  std::array<Band, kMeasureWords.size()> bands = {};
};

// Makes the sample of this moment.
Sample sample_of(const looks::NodeRows& rows, std::int64_t now_ms);

// Samples in buckets of one width. Keeps the newest.
class Series {
 public:
  Series(std::int64_t width_ms, std::size_t most) : width_ms_(width_ms), most_(most) {}

  void add(const Sample& sample);
  std::int64_t width_ms() const { return width_ms_; }
  std::size_t most() const { return most_; }
  std::size_t size() const { return buckets_.size(); }
  // 0 is the oldest.
  const Sample& at(std::size_t index) const;

 private:
  std::int64_t width_ms_;
  std::size_t most_;
  std::size_t oldest_ = 0;  // once the ring is full
  std::vector<Sample> buckets_;
  // The number of moments behind the mean of each measure in the newest bucket.
  std::array<int, kMeasureWords.size()> counts_ = {};
};

class History {
 public:
  // Expects samples in the order of time, one a second.
  void add(const Sample& sample);

  // Returns the series that spans this time with the narrowest buckets.
  const Series& series_for(std::int64_t span_ms) const;

 private:
  std::array<Series, 3> series_ = {Series(1000, 600), Series(10'000, 720), Series(60'000, 1440)};
};

// A line of JSON: {"width_ms", "time_ms": [...], "state": [...], "ranks": [...],
// "cpu": {"mean": [...], "least": [...], "most": [...]}, ...}. Unknown numbers are null.
std::string series_json(const Series& series);

}  // namespace lockstep::page
