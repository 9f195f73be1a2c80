#include "project/fan_out.h"

#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace lockstep::project {
namespace {

using link::Stream;

constexpr std::uint32_t kChannel = 1;
constexpr std::size_t kMostLine = 64UL << 10;
constexpr std::size_t kMostWords = 2000;
// Hosts that have not found each other by then get their files from the client.
constexpr std::chrono::seconds kOpeningTime{15};
constexpr std::size_t kSeed = 0;

}  // namespace

FanOut::FanOut(io::Loop& loop, FanSettings settings, std::function<void()> tell)
    : loop_(loop), settings_(std::move(settings)), tell_(std::move(tell)), patience_(loop) {
  hosts_.resize(settings_.takers.size() + 1);
  takers_.resize(settings_.takers.size());
  meeting_.destination = settings_.destination;
  meeting_.owner = settings_.owner;
}

std::uint64_t FanOut::bytes() const {
  std::uint64_t bytes = 0;
  for (const Taker& taker : takers_)
    bytes += taker.bytes;
  return bytes;
}

Status FanOut::open() {
  meeting_.key = random_key(peer::kKeyBytes);
  start(kSeed, "serve", meeting_, true);
  patience_.start(kOpeningTime, [this] {
    for (std::size_t host = 1; host < hosts_.size(); ++host)
      if (!takers_[host - 1].connected) on_failed(host, "they have not found each other in time");
  });
  LOCKSTEP_TRY(run());
  patience_.cancel();
  opening_ = false;
  for (std::size_t host = 1; host < hosts_.size(); ++host)
    if (takers_[host - 1].over) hosts_[host].link.reset();
  const bool any = std::any_of(takers_.begin(), takers_.end(),
                               [](const Taker& taker) { return taker.connected; });
  if (!any) hosts_[kSeed].link.reset();
  return {};
}

void FanOut::seed_is_done() {
  if (hosts_[kSeed].link) hosts_[kSeed].link->send(link::Data{kChannel, Stream::in, "!"});
}

Status FanOut::finish() {
  LOCKSTEP_TRY(run());
  for (Host& host : hosts_)
    host.link.reset();
  return {};
}

bool FanOut::waits() const {
  return std::any_of(takers_.begin(), takers_.end(), [this](const Taker& taker) {
    return !taker.over && !(opening_ && taker.connected);
  });
}

Status FanOut::run() {
  std::optional<int> signal;
  LOCKSTEP_TRY_ASSIGN(
      const auto signals, proc::SignalWatch::open(loop_, [&](int number) {
        if (number != SIGINT && number != SIGTERM && number != SIGHUP && number != SIGQUIT) return;
        signal = number;
        loop_.stop();
      }));
  running_ = true;
  if (waits()) loop_.run();
  running_ = false;
  if (signal) return Failure({Errc::canceled, proc::signal_name(*signal) + " came", {}, *signal});
  return {};
}

void FanOut::start(std::size_t host, const char* what, const peer::Meeting& meeting, bool more) {
  const hosts::HostPlace& place = host == kSeed ? settings_.seed : settings_.takers[host - 1];
  hosts_[host].link = std::make_unique<hosts::HostLink>(
      loop_, hosts::HostLink::Settings{.place = place},
      hosts::HostLink::Events{[this, host](const link::Frame& frame) { on_frame(host, frame); },
                              [this, host](const std::string& why) { on_failed(host, why); }});
  hosts::HostLink& link = *hosts_[host].link;
  link.send(
      link::Start{.channel = kChannel, .argv = {"host-tree", what}, .input = true, .own = true});
  link.send(link::Data{kChannel, Stream::in, peer::encode_meeting(meeting)});
  if (!more) link.send(link::Eof{kChannel, Stream::in});
}

void FanOut::on_frame(std::size_t host, const link::Frame& frame) {
  if (const auto* data = std::get_if<link::Data>(&frame)) return on_data(host, *data);
  if (const auto* refused = std::get_if<link::Refused>(&frame))
    return on_failed(host, refused->why);
  if (const auto* exit = std::get_if<link::Exit>(&frame))
    on_failed(host, exit->signal != 0
                        ? "its lockstep was ended by " + proc::signal_name(exit->signal)
                        : fmt::format("its lockstep ended with {}", exit->code));
}

void FanOut::on_data(std::size_t host, const link::Data& data) {
  hosts_[host].link->send(
      link::Credit{kChannel, data.stream, static_cast<std::uint32_t>(data.bytes.size())});
  const hosts::HostPlace& place = host == kSeed ? settings_.seed : settings_.takers[host - 1];
  if (data.stream == Stream::err)
    return log::warning("{}: {}", place.name, printable(strip(data.bytes), kMostWords));
  std::string& said = hosts_[host].said;
  said += data.bytes;
  std::size_t end = 0;
  while ((end = said.find('\n')) != std::string::npos) {
    const auto answer = peer::parse_answer(said.substr(0, end));
    said.erase(0, end + 1);
    if (!answer) return on_failed(host, "its answer makes no sense");
    on_answer(host, *answer);
  }
  if (said.size() > kMostLine) on_failed(host, "its answer is too long");
}

void FanOut::on_answer(std::size_t host, const peer::Answer& answer) {
  if (const auto* trouble = std::get_if<peer::Trouble>(&answer))
    return on_failed(host, trouble->why);
  if (host == kSeed) {
    if (const auto* listening = std::get_if<peer::Listening>(&answer)) on_listening(*listening);
    return;
  }
  Taker& taker = takers_[host - 1];
  if (taker.over) return;
  if (std::holds_alternative<peer::Connected>(answer)) {
    taker.connected = true;
  } else if (const auto* progress = std::get_if<peer::Progress>(&answer)) {
    taker.bytes = progress->bytes;
  } else if (const auto* done = std::get_if<peer::Done>(&answer)) {
    taker.bytes = done->bytes;
    taker.over = true;
    if (done->missing != 0)
      taker.trouble = fmt::format("{} of the files never came there", done->missing);
  }
  if (tell_) tell_();
  if (running_ && !waits()) loop_.stop();
}

void FanOut::on_listening(const peer::Listening& listening) {
  if (std::exchange(listening_, true)) return;
  meeting_.addresses = listening.addresses;
  meeting_.port = listening.port;
  for (std::size_t host = 1; host < hosts_.size(); ++host)
    if (!takers_[host - 1].over) start(host, "take", meeting_, false);
}

// A seed that fails takes the takers with it that have not reached it; the others see it
// themselves.
void FanOut::on_failed(std::size_t host, const std::string& why) {
  for (std::size_t i = 0; i < takers_.size(); ++i) {
    Taker& taker = takers_[i];
    if (taker.over || (host == kSeed ? taker.connected : host != i + 1)) continue;
    taker.over = true;
    taker.trouble = why;
  }
  if (running_ && !waits()) loop_.stop();
}

}  // namespace lockstep::project
