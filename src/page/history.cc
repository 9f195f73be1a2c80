#include "page/history.h"

#include "codec/json.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace lockstep::page {
namespace {

// Orders the states: a bucket shows the most urgent state of its samples.
int urgency(std::uint8_t state) {
  using looks::VerdictState;
  switch (static_cast<VerdictState>(state)) {
    case VerdictState::hung:
      return 6;
    case VerdictState::stopped:
      return 5;
    case VerdictState::quiet:
      return 4;
    case VerdictState::waiting:
      return 3;
    case VerdictState::training:
      return 2;
    case VerdictState::starting:
      return 1;
    case VerdictState::ended:
      break;
  }
  return 0;
}

std::uint8_t state_number(std::string_view word) {
  const auto* const at =
      std::find(looks::kVerdictStateWords.begin(), looks::kVerdictStateWords.end(), word);
  return static_cast<std::uint8_t>(at == looks::kVerdictStateWords.end()
                                       ? static_cast<std::ptrdiff_t>(looks::VerdictState::ended)
                                       : at - looks::kVerdictStateWords.begin());
}

std::optional<double> measured(const looks::RankRow& row, Measure measure) {
  switch (measure) {
    case Measure::steps_per_s:
      return row.steps_per_s;
    case Measure::cpu:
      return row.cpu;
    case Measure::memory:
      return static_cast<double>(row.memory_bytes);
    case Measure::waiting:
      return row.waiting_share;
    case Measure::input:
      return row.input_share;
    case Measure::gpu:
      return row.gpu_share;
  }
  return std::nullopt;
}

Band band_of(const looks::NodeRows& rows, Measure measure) {
  Band band;
  double sum = 0;
  int count = 0;
  for (const looks::RankRow& row : rows.rows) {
    // A rank that has ended would pull the mean down.
    const auto value = row.state == "gone" ? std::nullopt : measured(row, measure);
    if (!value) continue;
    sum += *value;
    ++count;
    // fmin() and fmax() take the number if the other one is NaN.
    band.least = std::fmin(band.least, static_cast<float>(*value));
    band.most = std::fmax(band.most, static_cast<float>(*value));
  }
  if (count > 0) band.mean = static_cast<float>(sum / count);
  return band;
}

void merge_band(Band& into, int& count, const Band& more) {
  into.least = std::fmin(into.least, more.least);
  into.most = std::fmax(into.most, more.most);
  if (std::isnan(more.mean)) return;
  ++count;
  if (count == 1)
    into.mean = more.mean;
  else
    into.mean += (more.mean - into.mean) / static_cast<float>(count);
}

nlohmann::ordered_json number_json(float value) {
  if (std::isnan(value)) return nullptr;
  // Four digits are enough for a chart, and much shorter.
  const double digits = 3 - std::floor(std::log10(std::max(std::fabs(value), 1e-6F)));
  // Dividing by a whole power of ten gives the number that prints shortest.
  const double power = std::pow(10, std::fabs(digits));
  return digits > 0 ? std::round(value * power) / power : std::round(value / power) * power;
}

}  // namespace

Sample sample_of(const looks::NodeRows& rows, std::int64_t now_ms) {
  Sample sample{.time_ms = now_ms, .state = state_number(rows.state)};
  sample.ranks = static_cast<std::uint16_t>(
      std::count_if(rows.rows.begin(), rows.rows.end(),
                    [](const looks::RankRow& row) { return row.state != "gone"; }));
  for (std::size_t i = 0; i < sample.bands.size(); ++i)
    sample.bands[i] = band_of(rows, static_cast<Measure>(i));
  return sample;
}

void Series::add(const Sample& sample) {
  const std::int64_t begin = sample.time_ms - sample.time_ms % width_ms_;
  const std::size_t newest = oldest_ == 0 ? buckets_.size() - 1 : oldest_ - 1;
  // A clock that is set back must not open a second bucket for a time that has one.
  const bool same = !buckets_.empty() && begin <= buckets_[newest].time_ms;
  if (!same) {
    counts_ = {};
    Sample fresh = sample;
    fresh.time_ms = begin;
    fresh.bands = {};
    if (buckets_.size() < most_) {
      buckets_.push_back(fresh);
    } else {
      buckets_[oldest_] = fresh;
      oldest_ = (oldest_ + 1) % most_;
    }
  }
  Sample& bucket = buckets_[oldest_ == 0 ? buckets_.size() - 1 : oldest_ - 1];
  if (urgency(sample.state) > urgency(bucket.state)) bucket.state = sample.state;
  // The minimum, so that a long bucket still shows a short loss of ranks.
  bucket.ranks = std::min(bucket.ranks, sample.ranks);
  for (std::size_t i = 0; i < bucket.bands.size(); ++i)
    merge_band(bucket.bands[i], counts_[i], sample.bands[i]);
}

const Sample& Series::at(std::size_t index) const {
  return buckets_[(oldest_ + index) % buckets_.size()];
}

void History::add(const Sample& sample) {
  for (Series& series : series_)
    series.add(sample);
}

const Series& History::series_for(std::int64_t span_ms) const {
  const auto* const found = std::find_if(series_.begin(), series_.end(), [&](const Series& series) {
    return span_ms <= series.width_ms() * static_cast<std::int64_t>(series.most());
  });
  return found == series_.end() ? series_.back() : *found;
}

std::string series_json(const Series& series) {
  using Json = nlohmann::ordered_json;
  Json json{{"width_ms", series.width_ms()},
            {"time_ms", Json::array()},
            {"state", Json::array()},
            {"ranks", Json::array()}};
  for (const std::string_view measure : kMeasureWords)
    json[std::string(measure)] = {
        {"mean", Json::array()}, {"least", Json::array()}, {"most", Json::array()}};
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Sample& sample = series.at(i);
    json["time_ms"].push_back(sample.time_ms);
    json["state"].push_back(sample.state);
    json["ranks"].push_back(sample.ranks);
    for (std::size_t measure = 0; measure < kMeasureWords.size(); ++measure) {
      Json& lists = json[std::string(kMeasureWords[measure])];
      const Band& band = sample.bands[measure];
      lists["mean"].push_back(number_json(band.mean));
      lists["least"].push_back(number_json(band.least));
      lists["most"].push_back(number_json(band.most));
    }
  }
  return codec::print_json(json);
}

}  // namespace lockstep::page
