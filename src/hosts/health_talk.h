// Talks to `lockstep host-health` on a machine over an open link. Collects the facts of the
// machine, and measures the clock and the transfer rate in both directions. Passive, like
// SmallCommand: the owner feeds the talk with frames.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "link/channel.h"
#include "link/stream_ends.h"
#include "machine/health.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace lockstep::hosts {

struct HealthReport {
  machine::HealthFacts facts;
  machine::HealthMeasures measures;
};

class HealthTalk {
 public:
  using Send = link::Channel::Send;
  using Done = std::function<void(Result<HealthReport>)>;  // called once; may destroy the talk

  // channel: a number that no other channel of the link uses.
  HealthTalk(io::Loop& loop, std::uint32_t channel, Send send, Done done);

  // Starts host-health. gpus: also asks for the GPUs.
  void begin(bool gpus);
  void on_frame(const link::Frame& frame) { channel_.take(frame); }

 private:
  // The parts of the answer, in the order of the stream: a line with the clock, bytes for the
  // measurement, a line with the facts.
  enum class Part { clock, noise, facts };

  void ask();
  void on_output(link::Stream stream, std::string_view bytes);
  bool take_clock();
  bool take_noise();
  void on_end(const link::ChannelEnd& end);
  void feed();
  void finish(Result<HealthReport> result);

  io::Loop& loop_;
  Done done_;
  Part part_ = Part::clock;
  bool gpus_ = false;
  HealthReport report_;
  double asked_at_ms_ = 0;  // Unix time, by the clock of this machine
  io::TimePoint asked_;
  io::TimePoint first_noise_;
  std::size_t noise_ = 0;         // received bytes of the measurement
  std::size_t noise_before_ = 0;  // bytes of the measurement that arrived together with the first
  bool fed_ = false;              // the bytes for the other direction went to feed_
  std::string text_;              // received bytes of the current part
  std::string err_;
  std::unique_ptr<link::Feed> feed_;
  link::Channel channel_;
};

}  // namespace lockstep::hosts
