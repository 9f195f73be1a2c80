// Sends one small request to a host's own lockstep over an open link, and collects the answer (at
// most 1 MiB). Passive: `send` carries the frames of the command, and the owner passes on the
// frames of the host.
#pragma once

#include "base/error.h"
#include "link/channel.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::hosts {

class SmallCommand {
 public:
  using Send = link::Channel::Send;
  // Called once, with the command's stdout or the reason of the failure. May destroy the command.
  using Done = std::function<void(Result<std::string>)>;

  // channel: a number that no other channel of the link uses, now or before.
  SmallCommand(std::uint32_t channel, Send send, Done done);

  // Starts `lockstep ARGV` on the host, with `input` on stdin. Call once.
  void begin(std::vector<std::string> argv, std::string input);
  void on_frame(const link::Frame& frame) { channel_.take(frame); }

 private:
  void on_output(link::Stream stream, std::string_view bytes);
  void on_end(const link::ChannelEnd& end);
  void finish(Result<std::string> result);

  Done done_;
  std::string input_;
  std::string out_;
  std::string err_;
  link::Channel channel_;
};

}  // namespace lockstep::hosts
