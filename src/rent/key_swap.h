// Replaces a machine's host key, over an open link. Other programs can read user data, so the key
// there must not stay. The machine makes a new key, the client pins the key, and only then sshd
// shows it. Passive like SmallCommand: the owner hands in frames.
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

// Call begin() once, then pass every frame of the link to on_frame().
class KeySwap {
 public:
  struct Settings {
    std::string pins;  // the file of pinned keys
    std::string address;
    int port = 22;
    std::uint32_t channel = 0;  // uses this channel and the next
  };
  // Called once, with an error of the link or the machine's answer. May destroy this object.
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
