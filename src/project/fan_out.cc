#include "project/fan_out.h"

#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "hosts/end_words.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <chrono>
#include <optional>
#include <utility>

namespace lockstep::project {
namespace {

using link::Stream;

constexpr std::uint32_t kChannel = 1;
// Limits for words of a host, which is not trusted to end a line.
constexpr std::size_t kMostLine = 64UL << 10;
constexpr std::size_t kMostWords = 2000;
// Covers the links, the seed's start and the three seconds in which a taker tries all addresses.
// Hosts that have not found each other by then get their files from the client.
constexpr std::chrono::seconds kOpeningTime{15};
constexpr std::size_t kSeed = FanCourse::kSeed;

}  // namespace

FanOut::FanOut(io::Loop& loop, FanSettings settings, std::function<void()> tell)
    : loop_(loop),
      settings_(std::move(settings)),
      tell_(std::move(tell)),
      course_(settings_.takers.size()),
      patience_(loop) {
  for (std::size_t i = 0; i <= settings_.takers.size(); ++i)
    hosts_.push_back({.link = {}, .channel = {}, .output = LineCutter(kMostLine)});
  meeting_.destination = settings_.destination;
  meeting_.owner = settings_.owner;
}

Status FanOut::open() {
  // A new key for each sync. The key goes over the links' stdin only, never through arguments, the
  // environment or files.
  meeting_.key = random_key(peer::kKeyBytes);
  // The seed's input stays open: seed_is_done() writes there, and the end of the input ends the
  // seed's part.
  start(kSeed, "serve", meeting_, true);
  patience_.start(kOpeningTime, [this] {
    course_.on_late();
    stop_if_done();
  });
  LOCKSTEP_TRY(run());
  patience_.cancel();
  course_.opened();
  // Close the links of hosts without a part in the transfer. A seed without takers would listen for
  // nothing.
  for (std::size_t host = 1; host < hosts_.size(); ++host)
    if (takers()[host - 1].over) hosts_[host].link.reset();
  if (!course_.any_connected()) hosts_[kSeed].link.reset();
  return {};
}

void FanOut::seed_is_done() {
  // The byte itself means nothing. Its arrival is the message.
  if (hosts_[kSeed].link) hosts_[kSeed].channel->write("!");
}

Status FanOut::finish() {
  LOCKSTEP_TRY(run());
  // The end of the link ends `serve` on the seed, and with it the open port.
  for (Host& host : hosts_)
    host.link.reset();
  return {};
}

// Answers also arrive while other work runs on the loop (the transfer to the seed). Only stop the
// loop that run() has started.
void FanOut::stop_if_done() {
  if (running_ && !course_.waits()) loop_.stop();
}

Status FanOut::run() {
  std::optional<int> signal;
  // The caller decides about the end. Here a signal only ends the wait.
  LOCKSTEP_TRY_ASSIGN(const auto signals, proc::SignalWatch::open(loop_, [&](int number) {
                        if (!proc::is_stop_signal(number)) return;
                        signal = number;
                        loop_.stop();
                      }));
  running_ = true;
  if (course_.waits()) loop_.run();
  running_ = false;
  if (signal) return Failure({Errc::canceled, proc::signal_name(*signal) + " came", {}, *signal});
  return {};
}

const hosts::HostPlace& FanOut::place_of(std::size_t host) const {
  return host == kSeed ? settings_.seed : settings_.takers[host - 1];
}

void FanOut::start(std::size_t host, const char* what, const peer::Meeting& meeting, bool more) {
  Host& each = hosts_[host];
  each.link = std::make_unique<hosts::HostLink>(
      loop_, hosts::HostLink::Settings{.place = place_of(host)},
      hosts::HostLink::Events{
          [this, host](const link::Frame& frame) { hosts_[host].channel->take(frame); },
          [this, host](std::string why) { hosts_[host].channel->lose(std::move(why)); }});
  each.channel = std::make_unique<link::Channel>(
      kChannel, [link = each.link.get()](const link::Frame& frame) { link->send(frame); },
      link::Channel::Events{
          .output = [this, host](Stream stream,
                                 std::string_view bytes) { on_output(host, stream, bytes); },
          .ended =
              [this, host](const link::ChannelEnd& end) {
                on_failed(host, hosts::end_words("its lockstep", end));
              }});
  each.channel->start({.argv = {"host-tree", what}, .input = true, .own = true});
  each.channel->write(peer::encode_meeting(meeting));
  // A taker reads all of its input before the work begins.
  if (!more) each.channel->end_input();
}

void FanOut::on_output(std::size_t host, Stream stream, std::string_view bytes) {
  if (stream == Stream::err)
    return log::warning("{}: {}", place_of(host).name, printable(strip(bytes), kMostWords));
  LineCutter& output = hosts_[host].output;
  output.put(bytes);
  while (const auto line = output.next()) {
    const auto answer = peer::parse_answer(*line);
    // A broken host must not stop the sync: its takers get their files from the client.
    if (!answer) return on_failed(host, "invalid answer");
    on_answer(host, *answer);
  }
  if (output.too_long()) on_failed(host, "its answer is too long");
}

void FanOut::on_answer(std::size_t host, const peer::Answer& answer) {
  const FanCourse::Next next = course_.on_answer(host, answer);
  if (next == FanCourse::Next::start_takers) start_takers(std::get<peer::Listening>(answer));
  if (next == FanCourse::Next::tell && tell_) tell_();
  stop_if_done();
}

void FanOut::start_takers(const peer::Listening& listening) {
  meeting_.addresses = listening.addresses;
  meeting_.port = listening.port;
  for (std::size_t host = 1; host < hosts_.size(); ++host)
    if (!takers()[host - 1].over) start(host, "take", meeting_, false);
}

void FanOut::on_failed(std::size_t host, const std::string& why) {
  course_.on_failed(host, why);
  stop_if_done();
}

}  // namespace lockstep::project
