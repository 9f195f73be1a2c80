// The static backend: fixed nodes with given ranks, and one TCPStore at the master's address for
// agents and workers. The wire protocol is torchrun's.
//
// If all agents are Lockstep's, every node hears of a failure or a lost node, and all nodes restart
// together. Node rank 0 notices a lost node by missing heartbeats, and the other nodes notice a
// lost node rank 0 by unanswered ones. While restarts are left, a new node may replace a lost one.
#pragma once

#include "base/callback_scope.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/key_value_round.h"
#include "rendezvous/static_backend/static_member.h"
#include "rendezvous/static_backend/static_notes.h"
#include "rendezvous/static_backend/static_settings.h"
#include "rendezvous/static_backend/static_store.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous::static_backend {

// Carries out the decisions of StaticMember.
class StaticBackend : public Backend {
 public:
  StaticBackend(io::Loop& loop, StaticSettings settings);
  ~StaticBackend() override;

  void open(Done<void> done) override;
  void join(Done<std::optional<Round>> done) override;
  void tell_failure(const std::string& line, bool final) override;
  void tell_stop() override;
  bool others_can_go_on() const override {
    return !hosts() && member_.all_ours() && shared_.awaits_replacement();
  }
  bool carries_news() const override { return shared_.carries_news(); }
  bool send_news(const std::string& text) override { return shared_.send_news(text); }
  void finish(Done<void> done) override;
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done) override;
  void leave(Departure how, Done<void> done) override;
  std::string waiting_for() const override;
  std::optional<io::TimePoint> gives_up_at() const override;

 private:
  using Kind = StaticStep::Kind;

  bool hosts() const { return member_.hosts(); }
  StaticMember::Around around() const;
  void opened(Result<std::optional<std::int64_t>> running);
  void run(const StaticSteps& steps);
  void carry_out(const StaticStep& step);
  void carry_out_in_round(const StaticStep& step);
  void find_round(std::int64_t round);
  void claim(std::int64_t round);
  void agree(std::int64_t round);
  void await_over(std::int64_t round);
  void begin_round(const Assignment& made);
  void fail_join(const Error& error);
  void beat();
  void conclude();
  void say_farewell(const FailureRecord& record);
  void ask_and_leave();
  void stay();
  void part();
  StaticMember::Counts counts();

  StaticSettings settings_;
  StaticKeys names_;
  std::string identity_;  // this agent's id in a claim of a place
  StaticMember member_;
  StaticStore store_;
  KeyValueRound shared_;      // declared after store_, whose keys it uses, so destroyed first
  KeyValueRound::Join join_;  // the pending join until shared_ takes it
  Done<void> open_done_;
  std::function<void()> parted_;
  std::unique_ptr<KeyValue::Watch> over_;
  std::int64_t over_round_ = -1;
  std::unique_ptr<KeyValue::Watch> found_;
  std::unique_ptr<KeyValue::Watch> turned_away_;
  io::Timer turn_;
  io::Timer heart_;
  io::Timer loss_;
  io::Timer seek_;
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous::static_backend
