#include "hosts/health_talk.h"

#include "base/last_line.h"
#include "base/text.h"
#include "codec/json_members.h"
#include "hosts/end_words.h"
#include "hosts/host_check.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::hosts {
namespace {

// Bytes to measure in each direction: the window of one stream, so that no rate depends on the
// arrival of credit.
constexpr std::size_t kMeasured = 2UL << 20;
constexpr std::size_t kMostFacts = 1UL << 20;
constexpr double kMega = 1e6;

double ms_between(io::TimePoint from, io::TimePoint to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// The clock of the machine is compared with this one, so this must be Unix time. Durations use the
// steady clock.
double wall_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Returns MB/s. Half a millisecond at least: a transfer on this machine may take no measurable
// time.
double rate(std::size_t bytes, double ms) {
  return static_cast<double>(bytes) / kMega / (std::max(ms, 0.5) / 1000);
}

}  // namespace

HealthTalk::HealthTalk(io::Loop& loop, std::uint32_t channel, Send send, Done done)
    : loop_(loop),
      done_(std::move(done)),
      channel_(channel, std::move(send),
               {.started = [this] { ask(); },
                .output = [this](link::Stream stream,
                                 std::string_view bytes) { on_output(stream, bytes); },
                .input_read =
                    [this](std::size_t bytes) {
                      if (feed_) feed_->grant(bytes);
                    },
                .ended = [this](const link::ChannelEnd& end) { on_end(end); }}) {}

void HealthTalk::begin(bool gpus) {
  gpus_ = gpus;
  channel_.start({.argv = {"host-health"}, .input = true, .own = true});
}

void HealthTalk::ask() {
  asked_ = io::Clock::now();
  asked_at_ms_ = wall_ms();
  // Asked only once the program has started, so that the start does not count as distance.
  const nlohmann::json question{{"gpus", gpus_}, {"bytes", kMeasured}};
  channel_.write(codec::print_json(question) + "\n");
}

void HealthTalk::on_output(link::Stream stream, std::string_view bytes) {
  if (!done_) return;
  if (stream != link::Stream::out) {
    // Keep the beginning only: the host is not trusted to end its words.
    if (err_.size() < kMostFacts) err_ += bytes;
    return;
  }
  text_ += bytes;
  if (part_ == Part::clock && !take_clock()) return;
  if (part_ == Part::noise && !take_noise()) return;
  if (text_.size() > kMostFacts)
    finish(fail(Errc::corrupt, "the answer of host-health is too long"));
}

bool HealthTalk::take_clock() {
  const std::size_t end = text_.find('\n');
  // A host that never ends the line is caught by the size check in on_output().
  if (end == std::string::npos) return text_.size() > kMostFacts;
  const nlohmann::json answer = codec::parse_json(std::string_view(text_).substr(0, end));
  if (!answer.is_object()) {
    // finish() may destroy this object, so touch no member afterwards.
    finish(fail(Errc::corrupt, "the answer has no time"));
    return false;
  }
  report_.measures.clock_ahead_ms =
      clock_ahead_ms(codec::integer_member(answer, "clock_ns"), asked_at_ms_,
                     ms_between(asked_, io::Clock::now()));
  text_.erase(0, end + 1);
  part_ = Part::noise;
  // host-health reads these bytes now, before its own, so the two directions do not share the
  // connection.
  feed();
  return true;
}

// Bytes that arrive with the first byte were under way before the measurement began, so leave these
// bytes out of the rate.
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
      link::Source::Events{[this](std::string bytes) { channel_.write(std::move(bytes)); },
                           [this] { channel_.end_input(); }});
}

void HealthTalk::on_end(const link::ChannelEnd& end) {
  if (!done_) return;
  if (!end.succeeded()) {
    std::string why = end_words("its lockstep", end);
    if (!err_.empty()) why += ": " + printable(last_line(err_));
    return finish(fail(Errc::unavailable, std::move(why)));
  }
  const nlohmann::json answer = codec::parse_json(strip(text_));
  if (!answer.is_object() || !answer.contains("facts"))
    return finish(fail(Errc::corrupt, "host-health printed no readable answer"));
  auto facts = machine::health_from_json(answer["facts"]);
  if (!facts) return finish(Failure(facts.error()));
  report_.facts = std::move(*facts);
  const std::int64_t down_ms = codec::integer_member(answer, "down_ms");
  // 0: the bytes did not all arrive there.
  if (down_ms > 0) report_.measures.down_mb_s = rate(kMeasured, static_cast<double>(down_ms));
  finish(std::move(report_));
}

void HealthTalk::finish(Result<HealthReport> result) {
  // `done` may destroy this object, so the function must not be a member during the call.
  const Done done = std::exchange(done_, {});
  done(std::move(result));
}

}  // namespace lockstep::hosts
