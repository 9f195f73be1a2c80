// The c10d backend's meeting place: a TCPStore hosted by one of the agents. Decides whether this
// node hosts the store, connects to the store, and determines this node's own address.
#pragma once

#include "codec/rdzv_endpoint.h"
#include "io/loop.h"
#include "rendezvous/dynamic/meeting_place.h"
#include "rendezvous/dynamic/text_state.h"
#include "rendezvous/host_finder.h"
#include "rendezvous/tcp_key_value.h"
#include "store/server.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous::dynamic {

struct C10dPlaceSettings {
  codec::RdzvEndpoint endpoint;
  std::string run_id;
  std::optional<bool> is_host = {};
  std::optional<std::string> local_addr = {};
  std::chrono::milliseconds connect_timeout{60'000};  // for finding and reaching the store
  std::chrono::milliseconds read_timeout{60'000};     // timeout of each answer
};

class C10dPlace : public MeetingPlace {
 public:
  C10dPlace(io::Loop& loop, C10dPlaceSettings settings);
  ~C10dPlace() override;  // ends the store, if hosted here

  void open(std::function<void(Result<void>)> done) override;
  KeyValue& keys() override { return *keys_; }
  StateStore& state() override { return *state_; }
  std::string node_address() const override { return node_address_; }
  bool is_quick() const override { return true; }
  bool hosts() const override { return server_ != nullptr; }
  std::size_t guests() const override;
  void part() override;
  void on_departure(std::function<void()> fn) override;
  void announce(const Node& self) override;
  std::string describe() const override;
  std::string strangers() const override;

  store::Server* server() { return server_.get(); }

 private:
  void settle_host();
  std::string host_reason() const;
  void check_host();
  void look_who_left();
  std::string announcement(const std::string& from) const;
  void reach(const std::string& host);
  void open_state();
  Error host_gone(Error error) const;
  void finish(Result<void> outcome);
  std::string describe_hosting() const;

  io::Loop& loop_;
  C10dPlaceSettings settings_;
  std::unique_ptr<HostFinder> finder_;
  FoundHost found_;
  io::TimePoint reach_until_{};
  std::string host_reason_;
  bool port_taken_ = false;  // the port on which this node would have hosted
  std::string node_address_;
  std::unique_ptr<store::Server> server_;
  std::unique_ptr<TcpKeyValue> keys_;
  std::unique_ptr<TextState<TcpKeyValue>> state_;
  std::function<void(Result<void>)> open_done_;
};

}  // namespace lockstep::rendezvous::dynamic
