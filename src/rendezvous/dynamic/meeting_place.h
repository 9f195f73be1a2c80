// The meeting place of a dynamic rendezvous: a key-value store that holds the shared state, and the
// way to reach that store. Implementations: c10d_place (a TCPStore), file_place, etcd_v2_place.
#pragma once

#include "base/error.h"
#include "rendezvous/dynamic/state.h"
#include "rendezvous/dynamic/state_store.h"
#include "rendezvous/key_value.h"

#include <cstddef>
#include <functional>
#include <string>

namespace lockstep::rendezvous::dynamic {

class MeetingPlace {
 public:
  virtual ~MeetingPlace() = default;

  // Opens the place. Called once, before any other function. `done` never runs inside the call.
  virtual void open(std::function<void(Result<void>)> done) = 0;
  // Valid after open() has succeeded. Owned by the place.
  virtual KeyValue& keys() = 0;
  virtual StateStore& state() = 0;
  // The address by which the other nodes know this node.
  virtual std::string node_address() const = 0;
  // Returns whether nodes may write a few keys a second. Other stores keep each value, on a disk.
  virtual bool is_quick() const { return false; }
  // Returns whether this node hosts the store, which then ends with this node.
  virtual bool hosts() const { return false; }
  virtual std::size_t guests() const { return 0; }  // connections of other nodes, while hosting
  // Sets the function to call when guests have disconnected, while hosting; nullptr: none.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  virtual void on_departure(std::function<void()> /*fn*/) {}
  // Closes this guest's connection: this node needs the store no more.
  virtual void part() {}
  // Tells the host which node this guest's connection belongs to.
  virtual void announce(const Node& /*self*/) {}
  // Sets the function that a host calls when the connection of an announced node has closed. The
  // argument is to_text(Node).
  void on_guest_lost(std::function<void(const std::string&)> fn) { on_guest_lost_ = std::move(fn); }
  // Sets the function to call when the store is lost. Pending requests have failed before the call.
  void on_lost(std::function<void(const Error&)> fn) { on_lost_ = std::move(fn); }
  // Returns a name for messages: "the store at 10.0.0.1:29400". While opening, the text adds the
  // last attempt and why this node does not host the store.
  virtual std::string describe() const = 0;
  // Returns a host's words about agents that ask for another run id; empty: none.
  virtual std::string strangers() const { return {}; }

 protected:
  std::function<void(const Error&)> on_lost_;
  std::function<void(const std::string&)> on_guest_lost_;
};

}  // namespace lockstep::rendezvous::dynamic
