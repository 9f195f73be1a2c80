// The etcd-v2 backend's meeting place: torchrun's keys in etcd's v2 API.
#pragma once

#include "io/loop.h"
#include "rendezvous/dynamic/meeting_place.h"
#include "rendezvous/etcd/etcd_access.h"
#include "rendezvous/etcd/etcd_transport.h"
#include "rendezvous/etcd/etcd_v2.h"

#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous::etcd {

struct EtcdV2PlaceSettings {
  EtcdAccess access;
  std::string run_id;
  std::optional<std::string> local_addr = {};
};

class EtcdV2Place : public dynamic::MeetingPlace {
 public:
  EtcdV2Place(io::Loop& loop, EtcdV2PlaceSettings settings);

  void open(std::function<void(Result<void>)> done) override;
  KeyValue& keys() override { return *keys_; }
  dynamic::StateStore& state() override { return *state_; }
  std::string node_address() const override { return node_address_; }
  std::string describe() const override;

 private:
  io::Loop& loop_;
  EtcdV2PlaceSettings settings_;
  std::string node_address_;
  std::unique_ptr<EtcdTransport> etcd_;
  std::unique_ptr<EtcdV2Store> keys_;
  std::unique_ptr<EtcdV2State> state_;
  io::Timer turn_;
};

}  // namespace lockstep::rendezvous::etcd
