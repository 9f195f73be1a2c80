// The `lockstep` backend: one agent hosts the hub (chosen by the endpoint, as in c10d), and every
// agent is a member.
#pragma once

#include "codec/rdzv_endpoint.h"
#include "io/fd.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/host_finder.h"
#include "rendezvous/hub/endpoint_call.h"
#include "rendezvous/hub/hub_member.h"
#include "rendezvous/hub/hub_server.h"
#include "rendezvous/hub/hub_succession.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous::hub {

inline constexpr std::size_t kMostHosts = 64;  // most hosts in a user's list
inline constexpr int kHubPort = 29400;         // used if the endpoint has no port

struct HubSettings {
  codec::RdzvEndpoint endpoint;
  // All hosts of the job in order, the endpoint first. More than one: another host may take over.
  std::vector<codec::RdzvEndpoint> hosts = {};
  std::optional<std::uint32_t> place = {};  // this node's place in `hosts`, if known
  // Without `hosts`: the nodes tell the hub their addresses, and learn the list of hosts from it.
  bool learns_hosts = false;
  std::string run_id;
  std::optional<bool> is_host = {};
  std::optional<std::string> local_addr = {};
  std::optional<std::string> token = {};
  std::size_t min_nodes = 1;
  std::size_t max_nodes = 1;
  bool has_spares = false;  // --spares: more nodes than max_nodes were started
  RankOrder order = RankOrder::host;
  std::vector<std::string> expected = {};  // as in CoordinatorSettings
  NodeOffer offer;
  OfferStore offer_store;
  // From --rdzv-conf. The host's heartbeat and last call apply to all nodes.
  std::chrono::milliseconds connect_timeout{600'000};  // for the first connection to the host
  std::chrono::milliseconds join_timeout{600'000};
  std::chrono::milliseconds last_call_timeout{30'000};
  std::chrono::milliseconds close_timeout{30'000};
  std::chrono::milliseconds keep_alive_interval{1'000};
  int keep_alive_max_attempt = 5;
  std::chrono::milliseconds succession_patience{30'000};  // for finding a new host in the list
  std::chrono::milliseconds lost_patience{
      3'000};  // how long to retry a host that refuses connections
};

// Settings for every backend whose nodes meet at a hub: this one and etcd3.
hub::HubMemberSettings member_settings(const HubSettings& settings, const hub::Nonce& agent);
hub::HubServerSettings hub_server_settings(const HubSettings& given, const hub::Nonce& host);
// Returns whether the round can do without this node: enough nodes are left, a spare may wait, or
// another node may take the place.
bool can_be_missed(const HubSettings& settings, const hub::HubMember& member);

class HubBackend final : public Backend {
 public:
  HubBackend(io::Loop& loop, HubSettings settings);
  ~HubBackend() override;

  void open(Done<void> done) override;
  void join(Done<std::optional<Round>> done) override;
  void tell_failure(const std::string& line, bool final) override;
  bool give_way(bool gives) override {
    member_.give_way(gives);
    return gives && !hosts();
  }
  bool others_can_go_on() const override { return !hosts() && can_be_missed(settings_, member_); }
  void tell_stop() override;
  bool carries_news() const override { return true; }
  bool send_news(const std::string& text) override { return member_.send_news(text); }
  void finish(Done<void> done) override;
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done) override;
  void leave(Departure how, Done<void> done) override;
  std::string staying_for() const override;
  std::string waiting_for() const override;
  std::optional<io::TimePoint> gives_up_at() const override { return member_.gives_up_at(); }

  bool hosts() const { return server_ != nullptr; }
  int port() const { return settings_.endpoint.port; }
  const std::string& address() const { return member_.address(); }
  const hub::HubServer* server() const { return server_.get(); }
  const hub::HubMember& member() const { return member_; }

 private:
  void settle(Result<FoundHost> found);
  void look_for_place(std::size_t at);
  void settled();
  // hub_backend_succession.cc
  void expect_succession();
  void offer_to_host();
  void learn_hosts();
  void add_ledger(hub::HubServerSettings& server, bool takes_over);
  Status take_over();
  void stop_hosting();
  void reserve();
  void deposed(const std::string& why);
  // Returns whether this agent hosts at the endpoint, or did.
  bool is_first() const { return found_.choice.host && !port_taken_; }
  void call_endpoint();
  void moved(const Moved& moved);
  void wait_to_be_called();
  Status redirect();
  Status host();
  void reach(const std::string& host);
  void try_to_host_after_all();
  void opened(Result<void> outcome);
  void wait_for_guests(const Done<void>& done);
  void end_hosting();
  void look_for_the_real_host();
  void drop_tried(std::string& text) const;
  std::string why_not_host() const;

  io::Loop& loop_;
  HubSettings settings_;
  hub::Nonce agent_;
  std::unique_ptr<HostFinder> finder_;
  FoundHost found_;
  bool port_taken_ = false;
  std::unique_ptr<io::Lookup> lookup_;
  io::Fd reserved_;                           // holds the port on which this node may take over
  int own_port_ = 0;                          // that port
  std::unique_ptr<hub::HubServer> redirect_;  // so does this, at the endpoint's host
  std::unique_ptr<hub::HubServer> server_;
  std::unique_ptr<EndpointCall> endpoint_call_;  // while this node hosts for the first host
  hub::HubMember member_;
  std::unique_ptr<HubSuccession>
      succession_;  // declared after server_ and member_, so destroyed first
  io::Timer timer_;
  io::Timer deposed_;
  io::Timer recall_;
  bool leaving_ = false;
  Done<void> open_done_;
  Done<void> left_done_;  // this node has left, and its server waits for the guests
};

}  // namespace lockstep::rendezvous::hub
