#include "hosts/probe_course.h"

#include "base/log.h"
#include "base/text.h"
#include "hosts/end_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace lockstep::hosts {
namespace {

constexpr std::uint32_t kChannel = 1;
// An odd number: the median is then one of the measured values.
constexpr std::size_t kPings = 9;
constexpr std::size_t kClockReadings = 5;
// The host is not trusted: an endless answer must not fill the memory.
constexpr std::size_t kMostAnswer = 1UL << 20;

double milliseconds(io::Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

ProbeCourse::ProbeCourse(const CheckRequest& request, HostCheck& check, link::Channel::Send send,
                         std::function<Now()> now)
    : request_(request),
      check_(check),
      send_(send),
      now_(std::move(now)),
      output_(kMostAnswer),
      channel_(kChannel, std::move(send),
               {.started = [this] { ask_clock(); },
                .output = [this](link::Stream stream,
                                 std::string_view bytes) { on_output(stream, bytes); },
                .ended = [this](const link::ChannelEnd& how) { on_end(how); }}) {}

void ProbeCourse::begin() {
  ping();
}

void ProbeCourse::ping() {
  asked_ = now_();
  send_(link::Ping{round_trips_.size()});
}

void ProbeCourse::take(const link::Frame& frame) {
  if (over_) return;
  if (std::holds_alternative<link::Pong>(frame)) return on_pong();
  channel_.take(frame);
}

// Pings one at a time, so that pings do not delay each other. The first answer includes the log-in
// and does not count.
void ProbeCourse::on_pong() {
  if (!std::exchange(reached_, true)) return ping();
  round_trips_.push_back(milliseconds(now_().steady - asked_.steady));
  if (round_trips_.size() < kPings) return ping();
  std::sort(round_trips_.begin(), round_trips_.end());
  check_.latency_ms = round_trips_[kPings / 2];
  start_facts();
}

void ProbeCourse::start_facts() {
  std::vector<std::string> argv = {"host-facts"};
  if (request_.repair) argv.emplace_back("--repair");
  if (!request_.project.empty()) argv.insert(argv.end(), {"--project", request_.project});
  channel_.start({.argv = std::move(argv), .input = true, .own = true});
}

// host-facts prints the time for each line of its input, and the facts at the end of the input.
void ProbeCourse::ask_clock() {
  asked_ = now_();
  channel_.write("\n");
}

void ProbeCourse::on_output(link::Stream stream, std::string_view bytes) {
  if (over_) return;
  // host-facts warns on stderr, for example about a broken environment of the project. The check
  // goes on.
  if (stream == link::Stream::err)
    return log::warning("{}: {}", check_.name, printable(strip(bytes)));
  output_.put(bytes);
  if (output_.too_long()) return fail(check_.name + ": its answer is too long");
  // All further output is the facts, which on_end() takes whole.
  if (readings_ == kClockReadings) return;
  if (const auto line = output_.next()) on_clock(*line);
}

void ProbeCourse::on_clock(std::string_view line) {
  const double round_trip = milliseconds(now_().steady - asked_.steady);
  const auto there_ns = parse_int(line);
  if (!there_ns)
    return fail(fmt::format("{}: the answer has no time: {}", check_.name, printable(line)));
  // The reading could have been taken at any moment of the round trip. So the shortest round trip
  // has the smallest error: half of its time.
  if (readings_ == 0 || round_trip < best_round_trip_) {
    best_round_trip_ = round_trip;
    check_.clock_error_ms = round_trip / 2;
    check_.clock_ahead_ms = clock_ahead_ms(*there_ns, asked_.wall_ms, round_trip);
  }
  if (++readings_ < kClockReadings) return ask_clock();
  // The end of the input asks for the facts. Facts come last, because gathering facts can take
  // long.
  channel_.end_input();
}

void ProbeCourse::on_end(const link::ChannelEnd& how) {
  if (over_) return;
  if (!how.succeeded()) return fail(check_.name + ": " + end_words("its lockstep", how));
  if (!take_answer(output_.rest(), check_))
    return fail(check_.name + ": the host's lockstep printed no readable facts");
  over_ = true;
}

void ProbeCourse::fail(std::string error) {
  if (std::exchange(over_, true)) return;
  check_.error = std::move(error);
}

}  // namespace lockstep::hosts
