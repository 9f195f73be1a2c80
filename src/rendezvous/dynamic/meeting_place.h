// Where the agents of a dynamic rendezvous meet: a key-value store with the shared state in it, and
// the way there. c10d_place (a TCPStore), file_place, etcd_place.
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

  // Called once, before all else. No callback runs inside the call.
  virtual void open(std::function<void(Result<void>)> done) = 0;
  // After open():
  virtual KeyValue& keys() = 0;
  virtual StateStore& state() = 0;
  // What the others know this node by.
  virtual std::string node_address() const = 0;
  // This node hosts the store: it goes when the node goes.
  virtual bool hosts() const { return false; }
  virtual std::size_t guests() const { return 0; }  // connections of others, while hosting
  // Tells of guests that have gone, while hosting.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  virtual void on_departure(std::function<void()> /*fn*/) {}
  // This guest needs nothing any more: its connection is closed.
  virtual void part() {}
  // Tells the host that this guest's connection is this node's.
  virtual void announce(const Node& /*self*/) {}
  // Tells, while hosting, of an announced node (as to_text(Node) has it) whose connection has
  // closed.
  void on_guest_lost(std::function<void(const std::string&)> fn) { on_guest_lost_ = std::move(fn); }
  // The store is gone; requests under way have failed before.
  void on_lost(std::function<void(const Error&)> fn) { on_lost_ = std::move(fn); }
  // "the store at 10.0.0.1:29400"; while opening also what was tried last, and why this node does
  // not host it.
  virtual std::string describe() const = 0;
  // What a host has to say of others that look for it in vain; empty: nothing.
  virtual std::string strangers() const { return {}; }

 protected:
  std::function<void(const Error&)> on_lost_;
  std::function<void(const std::string&)> on_guest_lost_;
};

}  // namespace lockstep::rendezvous::dynamic
