// A machine's fresh host key in place of the one that its user data has carried, over a link that
// is there: it is made, pinned here, and only then shown. Passive, as SmallCommand is.
#pragma once

#include "hosts/small_command.h"
#include "rent/lease_answer.h"
#include "ssh/pins.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rent {

class KeySwap {
 public:
  struct Settings {
    std::string pins;  // the file
    std::string address;
    int port = 22;
    std::uint32_t channel = 0;  // and the one behind it
  };
  // Once: an error of the link, or what became of it. May destroy this.
  using Done = std::function<void(Result<KeyAnswer>)>;

  KeySwap(Settings settings, hosts::SmallCommand::Send send, Done done)
      : settings_(std::move(settings)), send_(std::move(send)), done_(std::move(done)) {}

  void begin();
  void on_frame(const link::Frame& frame) { command_->on_frame(frame); }

 private:
  using Then = void (KeySwap::*)(const KeyAnswer&);
  void ask(std::uint32_t channel, std::vector<std::string> words, Then then);
  void on_made(const KeyAnswer& key);
  void on_shown(const KeyAnswer& key);
  void finish(Result<KeyAnswer> key);

  Settings settings_;
  hosts::SmallCommand::Send send_;
  Done done_;
  ssh::Pins pins_;
  std::unique_ptr<hosts::SmallCommand> command_;
};

}  // namespace lockstep::rent
