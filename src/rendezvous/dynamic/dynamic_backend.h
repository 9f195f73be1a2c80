// The Backend of c10d (over a TCPStore or a file) and etcd-v2, which share torchrun's dynamic
// rendezvous. Lockstep's additions lie under keys and in numbers that torchrun's agents ignore.
#pragma once

#include "base/callback_scope.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/dynamic/dynamic_driver.h"
#include "rendezvous/dynamic/dynamic_state.h"
#include "rendezvous/dynamic/meeting_place.h"
#include "rendezvous/dynamic/skew_watch.h"
#include "rendezvous/key_value_round.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous::dynamic {

struct DynamicBackendSettings {
  std::string run_id;
  DynamicSettings dynamic;
  std::chrono::milliseconds read_timeout{60'000};
  std::chrono::seconds exit_barrier_timeout{300};  // 0: no barrier
  NodeOffer offer;
};

class DynamicBackend : public Backend {
 public:
  DynamicBackend(io::Loop& loop, std::unique_ptr<MeetingPlace> place,
                 DynamicBackendSettings settings, OfferStore offer_store);
  ~DynamicBackend() override;

  void open(Done<void> done) override;
  void join(Done<std::optional<Round>> done) override;
  void tell_failure(const std::string& line, bool final) override;
  void tell_stop() override;
  bool others_can_go_on() const override;
  bool carries_news() const override { return shared_.carries_news(); }
  bool send_news(const std::string& text) override { return shared_.send_news(text); }
  void finish(Done<void> done) override;
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done) override;
  void leave(Departure how, Done<void> done) override;
  std::string staying_for() const override;
  std::string waiting_for() const override;
  std::optional<io::TimePoint> gives_up_at() const override;

 private:
  using Phase = KeyValueRound::Phase;

  void compare_launches(const Done<void>& done);
  void agree(RoundResult round, const Done<std::optional<Round>>& done);
  void fail_join(const Error& error, const Done<std::optional<Round>>& done);
  void begin_round(const Assignment& made);
  void on_watched(const RendezvousState& state);
  void miss(const RendezvousState& state, Interruption::Kind kind, const std::string& why);
  void on_closed();
  void warn_of_skew(const RendezvousState& state);
  void on_lost(const Error& error);
  std::string gone(const RendezvousState& state) const;
  std::string silence_text(const RendezvousState& state) const;
  bool too_few() const;
  void say_goodbye(Departure how);
  void await_guests(Done<void> done);
  void part();

  io::Loop& loop_;
  std::unique_ptr<MeetingPlace> place_;
  DynamicBackendSettings settings_;
  OfferStore offer_store_;
  std::unique_ptr<DynamicDriver> driver_;
  RoundResult round_;
  std::string asked_;  // --nnodes, as told to the other nodes
  KeyValueRound shared_;
  std::string to_replace_;  // the lost node whose place is free: "b is gone (...)"
  std::unique_ptr<KeyValue::Watch> turned_away_;
  bool leaving_ = false;
  SkewWatch skew_{std::chrono::seconds(8)};  // below torchrun's limit: its agents evict at 15 s
  bool all_ours_ = false;
  int looks_at_too_few_ = 0;  // consecutive looks that found too few nodes
  bool seen_closed_ = false;  // the state was closed while this node waited in the barrier
  std::optional<Error> lost_;
  io::Timer turn_;
  io::Timer loss_;
  io::TimePoint leave_deadline_;
  io::TimePoint join_until_{};  // not valid while this node is a spare
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous::dynamic
