// The `etcd3` backend: the lockstep rendezvous with a host elected through etcd. Any node can take
// over: when the leader's lease is gone, another node opens a hub, and all other nodes move there.
// The workers' traffic never touches etcd.
//
// Before a round is placed, its number is written to etcd in a transaction that succeeds only while
// this node leads. So a leader that was frozen or cut off places nothing, and no round number is
// given twice. In the same way the good end of the job is written before any node hears of it. If
// etcd does not write it in time, the lease alone must do for the end. A node that has lost its
// lease but still reaches etcd becomes a candidate again. A new leader reads in etcd which nodes
// had finished before the takeover, and whether the job is over.
//
// Etcd3NodeCore decides. This class has the parts and carries the decisions out.
#pragma once

#include "base/callback_scope.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/etcd/etcd_access.h"
#include "rendezvous/etcd3/etcd3_client.h"
#include "rendezvous/etcd3/etcd3_election.h"
#include "rendezvous/etcd3/etcd3_node_core.h"
#include "rendezvous/hub/hub_backend.h"
#include "rendezvous/hub/hub_member.h"
#include "rendezvous/hub/hub_server.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous::etcd3 {

struct Etcd3Settings {
  etcd::EtcdAccess access;
  int lease_ttl = 3;     // seconds
  hub::HubSettings hub;  // its endpoint and is_host are ignored
};

class Etcd3Backend : public Backend {
 public:
  Etcd3Backend(io::Loop& loop, Etcd3Settings settings);
  ~Etcd3Backend() override;

  void open(Done<void> done) override;
  void join(Done<std::optional<Round>> done) override;
  void tell_failure(const std::string& line, bool final) override;
  bool give_way(bool gives) override {
    member_.give_way(gives);
    return gives && server_ == nullptr;
  }
  bool others_can_go_on() const override { return hub::can_be_missed(settings_.hub, member_); }
  void tell_stop() override;
  bool carries_news() const override { return true; }
  bool send_news(const std::string& text) override { return member_.send_news(text); }
  void finish(Done<void> done) override;
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done) override;
  void leave(Departure how, Done<void> done) override;
  std::string staying_for() const override;
  std::string waiting_for() const override;
  std::optional<io::TimePoint> gives_up_at() const override;

 private:
  void campaign(std::chrono::milliseconds patience);
  hub::HubServerSettings server_settings();
  void permit(std::function<void(Status)> answer);
  void refused(const Etcd3Facts& facts, const Error& error,
               const std::function<void(Status)>& answer);
  void permit_end();
  void interrupt(const Interruption& interruption);
  void started(Result<std::optional<Etcd3Facts>> facts);
  void on_leader(const std::optional<StorePlace>& place);
  void tell_change(const StorePlace& place);
  void on_elected(const std::optional<Etcd3Facts>& facts);
  void on_closed(const Etcd3Facts& facts);
  void on_deposed();
  void answer_join(Result<std::optional<Round>> outcome);
  void on_lost(const Error& error);
  void give_up(Error error);
  void nobody_leads();
  void fail_open(Error error);
  void opened(Result<void> outcome);
  Error closed_error() const;
  void end_finish(Result<void> outcome);
  void close_round(const hub::Failed& failed);
  void leave_as_leader(Departure how);
  void end_lead();

  io::Loop& loop_;
  Etcd3Settings settings_;
  hub::Nonce agent_;
  std::unique_ptr<Etcd3Client> client_;
  std::unique_ptr<Etcd3Election> election_;  // declared after client_, so destroyed first
  std::unique_ptr<hub::HubServer> server_;
  hub::HubMember member_;
  Etcd3NodeCore core_;
  Etcd3Facts facts_;
  Etcd3Facts draft_;                 // facts_ and what this node's hub has asked to write
  std::function<void(Status)> end_;  // permits a good end
  std::vector<std::function<void(Status)>> retries_;  // answered by the next write
  std::optional<StorePlace> leader_;
  std::optional<StorePlace> last_leader_;  // kept while no node leads
  std::optional<Error> lost_;              // why this node has no lease, or no part in the election
  Done<void> open_done_;
  Done<std::optional<Round>> join_done_;
  Done<void> finish_done_;
  Done<void> leave_done_;
  io::Timer meeting_;  // runs until a hub must be known
  io::TimePoint meeting_until_;
  io::Timer turn_;
  io::Timer again_;
  io::Timer end_due_;
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous::etcd3
