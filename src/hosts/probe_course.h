// Asks one host the questions of `lockstep cluster check`: pings, clock readings, facts. Pure: the
// owner feeds the course with frames and supplies both clocks.
#pragma once

#include "base/line_cutter.h"
#include "hosts/host_check.h"
#include "io/loop.h"
#include "link/channel.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

class ProbeCourse {
 public:
  struct Now {
    io::TimePoint steady;
    double wall_ms = 0;  // Unix time, by this machine's clock
  };
  // Writes the answers to `check`, whose name must be set. request and check must outlive the
  // course. Sends nothing before begin().
  ProbeCourse(const CheckRequest& request, HostCheck& check, link::Channel::Send send,
              std::function<Now()> now);

  void begin();
  void take(const link::Frame& frame);
  // Ends the course with an error. Does nothing once the course is over.
  void fail(std::string error);

  bool is_over() const { return over_; }

 private:
  void ping();
  void on_pong();
  void start_facts();
  void ask_clock();
  void on_output(link::Stream stream, std::string_view bytes);
  void on_clock(std::string_view line);
  void on_end(const link::ChannelEnd& how);

  const CheckRequest& request_;
  HostCheck& check_;
  link::Channel::Send send_;
  std::function<Now()> now_;
  bool reached_ = false;  // the first ping was answered
  bool over_ = false;
  std::vector<double> round_trips_;  // milliseconds
  Now asked_;                   // time of the last ping, or of the last question about the clock
  std::size_t readings_ = 0;    // readings of the clock so far
  double best_round_trip_ = 0;  // milliseconds
  LineCutter output_;
  link::Channel channel_;
};

}  // namespace lockstep::hosts
