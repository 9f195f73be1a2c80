// The conversation with a machine's `lockstep host-health` over a link that is there: its facts,
// and meanwhile its clock and how fast bytes go there and back. Passive, as SmallCommand is.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "link/frames.h"
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
  using Send = std::function<void(const link::Frame&)>;
  using Done = std::function<void(Result<HealthReport>)>;  // once; may destroy the talk

  HealthTalk(io::Loop& loop, std::uint32_t channel, Send send, Done done)
      : loop_(loop), channel_(channel), send_(std::move(send)), done_(std::move(done)) {}

  void begin(bool gpus);
  void on_frame(const link::Frame& frame);

 private:
  enum class Part { clock, noise, facts };

  void ask();
  void on_output(const link::Data& data);
  bool take_clock();
  bool take_noise();
  void on_exit(const link::Exit& exit);
  void feed();
  void finish(Result<HealthReport> result);

  io::Loop& loop_;
  std::uint32_t channel_;
  Send send_;
  Done done_;
  Part part_ = Part::clock;
  bool gpus_ = false;
  HealthReport report_;
  double asked_at_ms_ = 0;
  io::TimePoint asked_;
  io::TimePoint first_noise_;
  std::size_t noise_ = 0;         // bytes that came
  std::size_t noise_before_ = 0;  // of it what came with the first of them
  bool fed_ = false;
  std::string text_;
  std::string err_;
  std::unique_ptr<link::Feed> feed_;
};

}  // namespace lockstep::hosts
