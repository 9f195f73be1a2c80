// One connection to the hub, shared by the .cc files of HubServer.
#pragma once

#include "rendezvous/hub/hub_server.h"

#include <memory>
#include <string>
#include <vector>

namespace lockstep::rendezvous::hub {

struct HubServer::Guest {
  enum class State { hello, proof, member, vote_only, redirected };
  bool admitted() const { return state == State::member || state == State::vote_only; }
  PeerId id = 0;
  std::string from;  // ADDRESS:PORT
  State state = State::hello;
  Time since{};
  Hello hello;
  Nonce nonce{};
  std::vector<Frame> kept;  // frames received before this hub leads
  std::unique_ptr<HubStream> stream;
};

}  // namespace lockstep::rendezvous::hub
