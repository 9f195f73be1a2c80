// A third vote for a job of two nodes, held by a process that runs no ranks: the client of
// `lockstep run --on`. Two nodes and the vote are three voters, so either node goes on if the other
// is lost. If this process is gone, the hub writes a charter without the vote.
//
// Keeps one connection to the hub that leads. Tries the other host only after that hub has closed
// the connection or fallen silent, so the vote never helps to replace a hub that it can hear.
#pragma once

#include "io/loop.h"
#include "rendezvous/hub/hub_dial.h"
#include "rendezvous/hub/hub_stream.h"
#include "rendezvous/hub/ledger.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous::hub {

class RemoteVote {
 public:
  struct Settings {
    std::string run_id;
    std::optional<std::string> token;
    std::string name;  // for messages of the hosts
    // Returns the port on this machine's loopback that leads to the hub's port on a host, 0 or 1;
    // 0: no link leads there now.
    std::function<int(std::size_t host)> way;
  };

  RemoteVote(io::Loop& loop, Settings settings);

  const Charter& charter() const { return witness_.charter(); }

 private:
  void dial();
  void pause();
  void dialed(Result<HubDial::Connected> connected);
  void on_frame(const Frame& frame);
  void beat();
  void lost();

  io::Loop& loop_;
  Settings settings_;
  Nonce agent_;
  Witness witness_{kVoteOnly};
  std::size_t host_ = 1;  // of the last hub, or of none yet
  std::size_t dialed_ = 1;
  int tries_ = 0;  // since the last hub
  std::chrono::milliseconds heartbeat_{};
  std::chrono::milliseconds dead_{};
  std::chrono::milliseconds silent_{};
  std::unique_ptr<HubDial> dial_;
  std::unique_ptr<HubStream> stream_;
  io::Timer timer_;  // the next dial or beat
};

}  // namespace lockstep::rendezvous::hub
