// The backend `etcd`: torchrun's older rendezvous over etcd's v2 API. Ranks follow the order of
// arrival. A node counts as gone when its lease has run out.
#pragma once

#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/etcd/etcd_access.h"
#include "rendezvous/etcd/etcd_legacy_driver.h"
#include "rendezvous/etcd/etcd_transport.h"
#include "rendezvous/etcd/etcd_v2.h"
#include "rendezvous/key_value_round.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous::etcd {

struct EtcdLegacySettings {
  EtcdAccess access;
  std::string prefix = "/torchelastic/p2p";  // --rdzv-conf etcd_prefix
  std::string run_id;
  LegacyRules rules = {};
  std::chrono::milliseconds read_timeout{60'000};
  std::chrono::seconds exit_barrier_timeout{300};  // 0: no barrier
  std::optional<std::string> local_addr = {};
  NodeOffer offer = {};
};

class EtcdLegacy : public Backend {
 public:
  EtcdLegacy(io::Loop& loop, EtcdLegacySettings settings, OfferStore offer_store);
  ~EtcdLegacy() override;

  void open(Done<void> done) override;
  void join(Done<std::optional<Round>> done) override;
  void tell_failure(const std::string& line, bool final) override;
  void tell_stop() override;
  bool others_can_go_on() const override { return true; }
  void finish(Done<void> done) override;
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done) override;
  void leave(Departure how, Done<void> done) override;
  std::string waiting_for() const override;
  std::optional<io::TimePoint> gives_up_at() const override;

 private:
  using Phase = KeyValueRound::Phase;

  Status open_now();
  void agree(const LegacyState& state, const Done<std::optional<Round>>& done);
  Result<StorePlace> offer_place();
  void begin_round(const Assignment& made);
  void on_watched(const EtcdLegacyDriver::Watched& watched);
  void on_gone(const std::vector<std::size_t>& gone, bool closed);
  std::string gone_text(const std::vector<std::size_t>& gone) const;
  std::string name_of(std::size_t rank) const;

  io::Loop& loop_;
  EtcdLegacySettings settings_;
  OfferStore offer_store_;
  std::string node_address_;
  std::unique_ptr<EtcdTransport> etcd_;
  std::unique_ptr<EtcdLegacyDriver> driver_;
  std::unique_ptr<EtcdV2Store> keys_;  // of the round
  std::optional<LegacyState> round_;
  KeyValueRound shared_;  // declared after keys_, so destroyed first
  io::Timer turn_;
};

}  // namespace lockstep::rendezvous::etcd
