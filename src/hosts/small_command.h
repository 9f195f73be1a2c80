// A request to a host's own lockstep over a link that is there: a little input, a little output.
// Passive: its owner sends what it says and gives it the frames that come.
#pragma once

#include "base/error.h"
#include "link/frames.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::hosts {

class SmallCommand {
 public:
  using Send = std::function<void(const link::Frame&)>;
  // Once: what it printed, or why it could not. May destroy the command.
  using Done = std::function<void(Result<std::string>)>;

  SmallCommand(std::uint32_t channel, Send send, Done done)
      : channel_(channel), send_(std::move(send)), done_(std::move(done)) {}

  void begin(std::vector<std::string> argv, std::string input);
  void on_frame(const link::Frame& frame);

 private:
  void on_data(const link::Data& data);
  void finish(Result<std::string> result);

  std::uint32_t channel_;
  Send send_;
  Done done_;
  std::string input_;
  std::string out_;
  std::string err_;
};

}  // namespace lockstep::hosts
