// Node rank 0's store, seen by its host or by a guest. Opens when all nodes have come and closes
// when the guests are gone. Turns away a node with another --nnodes.
#pragma once

#include "io/loop.h"
#include "rendezvous/host_finder.h"
#include "rendezvous/static_backend/static_notes.h"
#include "rendezvous/static_backend/static_settings.h"
#include "rendezvous/tcp_key_value.h"
#include "store/server.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous::static_backend {

class StaticStore {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;

  StaticStore(io::Loop& loop, const StaticSettings& settings, StaticKeys names);

  // Opens the store. A guest gets the number of the running round, if there is one. `lost` is
  // called when an open store is lost.
  void open(Done<std::optional<std::int64_t>> done, std::function<void(const Error&)> lost);
  bool opened() const { return opened_; }
  // The time at which open() fails.
  io::TimePoint deadline() const { return deadline_; }
  const StorePlace& place() const { return place_; }
  std::string at() const;
  bool serves() const { return server_ != nullptr; }
  store::Server& server() { return *server_; }
  TcpKeyValue& keys() { return *keys_; }
  bool has_keys() const { return keys_ != nullptr; }

  // The host stays until all guests are gone, according to their connections or heartbeats.
  struct Stay {
    io::TimePoint until;
    std::function<void()> look;  // reads the heartbeats, once per interval
    std::function<bool()> all_gone;
    std::function<void()> done;
  };
  void await_guests(Stay stay);

  // Returns what a node waits for before the store is open. remarks(): a host's warnings, at any
  // time.
  std::string waiting_for() const;
  std::string remarks() const;

 private:
  bool hosts() const { return settings_.node_rank == 0; }
  Status host();
  void check_master();
  void connected(Result<void> outcome);
  void count_nodes();
  void compare_nodes(const std::optional<std::string>& nodes);
  void refuse(const std::string& nodes);
  void arrive();
  void answer(Result<std::optional<std::int64_t>> outcome);
  std::int64_t joined() const;
  std::string turned_away() const;

  io::Loop& loop_;
  const StaticSettings& settings_;
  StaticKeys names_;
  StorePlace place_;
  std::unique_ptr<store::Server> server_;
  std::unique_ptr<TcpKeyValue> keys_;
  std::unique_ptr<HostFinder> finder_;
  std::string misplaced_;  // set if this node has rank 0 although the master's address belongs to
                           // another machine
  bool told_turned_away_ = false;
  bool opened_ = false;
  Done<std::optional<std::int64_t>> done_;
  io::TimePoint deadline_;
  io::Timer turn_;
};

}  // namespace lockstep::rendezvous::static_backend
