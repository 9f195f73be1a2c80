// The frames that the coordinator sends and the connections that it closes, in the order of its
// decisions. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub {

class Outbox {
 public:
  struct Output {
    PeerId to = 0;
    std::shared_ptr<const std::string> bytes;  // may be nullptr
    bool close = false;                        // close the connection afterwards
    std::string turned_away = {};              // reason of the closing, for the host's log
    bool is_beat = false;
  };

  void send(PeerId to, const Frame& frame) { send_shared(to, bytes_of(frame)); }
  // Sends one frame to many connections without a copy for each.
  void send_shared(PeerId to, std::shared_ptr<const std::string> bytes) {
    output_.push_back({to, std::move(bytes), false});
  }
  void beat(PeerId to, std::shared_ptr<const std::string> bytes) {
    output_.push_back({.to = to, .bytes = std::move(bytes), .is_beat = true});
  }
  void close(PeerId peer) { output_.push_back({peer, nullptr, true}); }
  // Closes the connection of a node that does not fit, and says why to the node and to the log.
  void turn_away(PeerId peer, const Refusal& refusal) {
    output_.push_back({peer, bytes_of(refusal), true, refusal.text});
  }
  std::vector<Output> take() { return std::exchange(output_, {}); }

  static std::shared_ptr<const std::string> bytes_of(const Frame& frame) {
    return std::make_shared<const std::string>(frame_bytes(frame));
  }

 private:
  std::vector<Output> output_;
};

}  // namespace lockstep::rendezvous::hub
