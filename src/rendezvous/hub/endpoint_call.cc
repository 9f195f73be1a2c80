// One call at a time, each on a connection of its own.
#include "rendezvous/hub/endpoint_call.h"

#include <utility>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;
constexpr auto kBetween = 1s;
}  // namespace

EndpointCall::EndpointCall(io::Loop& loop, HubDialSettings endpoint, Moved place,
                           std::function<bool()> leads)
    : loop_(loop),
      endpoint_(std::move(endpoint)),
      place_(std::move(place)),
      leads_(std::move(leads)),
      timer_(loop) {
  endpoint_.patience = 2s;
  endpoint_.refused_patience = 0s;
  endpoint_.other_job_patience = 0s;
  // The name may lead here, and a hub must not take the call for its own node.
  endpoint_.agent = random_nonce();
  wait();
}

void EndpointCall::wait() {
  timer_.start(kBetween, [this] {
    stream_.reset();
    if (!leads_()) return wait();
    dial_ = std::make_unique<HubDial>(
        loop_, endpoint_,
        [this](Result<HubDial::Connected> connected) { dialed(std::move(connected)); });
  });
}

// A failed call is normal: the first host is dead, or takes part as a guest.
void EndpointCall::dialed(Result<HubDial::Connected> connected) {
  if (connected) {
    stream_ = std::move(connected->stream);
    stream_->set_events({.frame = [](const Frame&) {}, .bytes = {}, .ended = {}});
    stream_->send(place_);
  }
  wait();
}

}  // namespace lockstep::rendezvous::hub
