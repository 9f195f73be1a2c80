#include "rendezvous/etcd/etcd_v2_place.h"

#include "rendezvous/host_finder.h"

#include <utility>

namespace lockstep::rendezvous::etcd {

EtcdV2Place::EtcdV2Place(io::Loop& loop, EtcdV2PlaceSettings settings)
    : loop_(loop), settings_(std::move(settings)), turn_(loop) {}

void EtcdV2Place::open(std::function<void(Result<void>)> done) {
  turn_.start({}, [this, done = std::move(done)] {
    auto made = EtcdTransport::make(loop_, settings_.access);
    if (!made) return done(tl::make_unexpected(std::move(made).error()));
    etcd_ = std::move(*made);
    keys_ = std::make_unique<EtcdV2Store>(*etcd_);
    state_ = std::make_unique<EtcdV2State>(*etcd_, settings_.run_id);
    node_address_ = address_beside(settings_.access.endpoints.front(), settings_.local_addr);
    // Read the state once: the read shows whether etcd answers and has its v2 API.
    state_->read([this, done](const Result<dynamic::StateStore::Stored>& state) {
      if (state) return done({});
      done(tl::make_unexpected(Error(state.error()).within("etcd at " + etcd_->endpoints())));
    });
  });
}

std::string EtcdV2Place::describe() const {
  if (!etcd_) return "etcd";
  const std::string place = "etcd at " + etcd_->endpoints();
  return etcd_->trouble().empty() ? place : place + " (" + etcd_->trouble() + ")";
}

}  // namespace lockstep::rendezvous::etcd
