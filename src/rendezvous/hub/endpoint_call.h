// Calls the job's endpoint while another node hosts the hub. If the first host was started again,
// it waits there for the other nodes. The call tells it where the job goes on.
#pragma once

#include "io/loop.h"
#include "rendezvous/hub/hub_dial.h"

#include <functional>
#include <memory>

namespace lockstep::rendezvous::hub {

class EndpointCall {
 public:
  // place: of this node's hub. Calls every second while `leads` returns true. endpoint: its agent
  // and patience are chosen here.
  EndpointCall(io::Loop& loop, HubDialSettings endpoint, Moved place, std::function<bool()> leads);

 private:
  void wait();
  void dialed(Result<HubDial::Connected> connected);

  io::Loop& loop_;
  HubDialSettings endpoint_;
  Moved place_;
  std::function<bool()> leads_;
  std::unique_ptr<HubStream> stream_;  // open until the next call: closing it could lose the frame
  std::unique_ptr<HubDial> dial_;
  io::Timer timer_;
};

}  // namespace lockstep::rendezvous::hub
