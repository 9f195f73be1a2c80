#include "hosts/health_talk.h"

#include "base/last_line.h"
#include "base/text.h"
#include "codec/json_members.h"
#include "hosts/host_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace lockstep::hosts {
namespace {

constexpr std::size_t kMeasured = 2UL << 20;  // bytes each way
constexpr std::size_t kMostFacts = 1UL << 20;
constexpr double kMega = 1e6;

double ms_between(io::TimePoint from, io::TimePoint to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

double wall_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double rate(std::size_t bytes, double ms) {
  return static_cast<double>(bytes) / kMega / (std::max(ms, 0.5) / 1000);
}

}  // namespace

void HealthTalk::begin(bool gpus) {
  gpus_ = gpus;
  send_(link::Start{.channel = channel_, .argv = {"host-health"}, .input = true, .own = true});
}

void HealthTalk::on_frame(const link::Frame& frame) {
  if (!done_) return;
  if (const auto* data = std::get_if<link::Data>(&frame)) return on_output(*data);
  if (const auto* started = std::get_if<link::Started>(&frame)) {
    if (started->channel == channel_) ask();
    return;
  }
  if (const auto* credit = std::get_if<link::Credit>(&frame)) {
    if (feed_ && credit->channel == channel_) feed_->grant(credit->bytes);
    return;
  }
  if (const auto* refused = std::get_if<link::Refused>(&frame))
    return refused->channel == channel_ ? finish(fail(Errc::unavailable, refused->why)) : void();
  const auto* exit = std::get_if<link::Exit>(&frame);
  if (exit != nullptr && exit->channel == channel_) on_exit(*exit);
}

void HealthTalk::ask() {
  asked_ = io::Clock::now();
  asked_at_ms_ = wall_ms();
  const nlohmann::json question{{"gpus", gpus_}, {"bytes", kMeasured}};
  send_(link::Data{channel_, link::Stream::in, codec::print_json(question) + "\n"});
}

void HealthTalk::on_output(const link::Data& data) {
  if (data.channel != channel_ || data.bytes.empty()) return;
  send_(link::Credit{channel_, data.stream, static_cast<std::uint32_t>(data.bytes.size())});
  if (data.stream != link::Stream::out) {
    if (err_.size() < kMostFacts) err_ += data.bytes;
    return;
  }
  text_ += data.bytes;
  if (part_ == Part::clock && !take_clock()) return;
  if (part_ == Part::noise && !take_noise()) return;
  if (text_.size() > kMostFacts)
    finish(fail(Errc::corrupt, "what it says of its health is too long"));
}

bool HealthTalk::take_clock() {
  const std::size_t end = text_.find('\n');
  if (end == std::string::npos) return text_.size() > kMostFacts;
  const nlohmann::json answer = codec::parse_json(std::string_view(text_).substr(0, end));
  if (!answer.is_object()) {
    finish(fail(Errc::corrupt, "it says no time"));
    return false;
  }
  report_.measures.clock_ahead_ms =
      clock_ahead_ms(codec::integer_member(answer, "clock_ns"), asked_at_ms_,
                     ms_between(asked_, io::Clock::now()));
  text_.erase(0, end + 1);
  part_ = Part::noise;
  feed();
  return true;
}

// What came together with the first byte was on its way before the clock began.
bool HealthTalk::take_noise() {
  const std::size_t taken = std::min(text_.size(), kMeasured - noise_);
  if (noise_ == 0 && taken > 0) {
    first_noise_ = io::Clock::now();
    noise_before_ = taken;
  }
  noise_ += taken;
  text_.erase(0, taken);
  if (noise_ < kMeasured) return false;
  if (noise_before_ < kMeasured)
    report_.measures.up_mb_s =
        rate(kMeasured - noise_before_, ms_between(first_noise_, io::Clock::now()));
  part_ = Part::facts;
  return true;
}

void HealthTalk::feed() {
  feed_ = std::make_unique<link::Feed>(
      loop_,
      [this]() -> std::optional<std::string> {
        if (std::exchange(fed_, true)) return std::nullopt;
        return std::string(kMeasured, 'x');
      },
      link::Source::Events{[this](std::string bytes) {
                             send_(link::Data{channel_, link::Stream::in, std::move(bytes)});
                           },
                           [this] {
                             send_(link::Eof{channel_, link::Stream::in});
                           }});
}

void HealthTalk::on_exit(const link::Exit& exit) {
  if (exit.code != 0 || exit.signal != 0)
    return finish(fail(Errc::unavailable,
                       fmt::format("its binary can't tell its health (code {}, signal {}): {}",
                                   exit.code, exit.signal, printable(last_line(err_)))));
  const nlohmann::json answer = codec::parse_json(strip(text_));
  if (!answer.is_object() || !answer.contains("facts"))
    return finish(fail(Errc::corrupt, "what it says of its health is not readable"));
  auto facts = machine::health_from_json(answer["facts"]);
  if (!facts) return finish(Failure(facts.error()));
  report_.facts = std::move(*facts);
  const std::int64_t down_ms = codec::integer_member(answer, "down_ms");
  if (down_ms > 0) report_.measures.down_mb_s = rate(kMeasured, static_cast<double>(down_ms));
  finish(std::move(report_));
}

void HealthTalk::finish(Result<HealthReport> result) {
  const Done done = std::exchange(done_, {});  // may destroy this
  done(std::move(result));
}

}  // namespace lockstep::hosts
