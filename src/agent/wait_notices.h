// Notices about the nodes for which this node waits. The first notice comes soon, the next ones
// every ten seconds. Without a change the notices become rare: a spare may wait for days.
#pragma once

#include "io/loop.h"
#include "rendezvous/backend.h"

#include <chrono>
#include <cstddef>
#include <string>

namespace lockstep::agent {

// Limit of text that comes from other nodes, in bytes.
inline constexpr std::size_t kMostWords = 2000;

class WaitNotices {
 public:
  explicit WaitNotices(io::Loop& loop) : timer_(loop) {}

  // Starts the notices. Call cancel() before the backend is destroyed.
  void start(const rendezvous::Backend& backend);
  // Starts the notices of a finished node which stays for other nodes.
  void start_staying(const rendezvous::Backend& backend);
  void cancel() { timer_.cancel(); }

  // Returns whether a notice was printed: the user then wants to read how the wait ended.
  bool expects_an_end() const { return !said_.empty(); }
  std::chrono::seconds waited() const;

 private:
  void say_later(const rendezvous::Backend& backend, io::Duration pause);
  void say_staying_later(const rendezvous::Backend& backend, io::Duration pause);

  io::Timer timer_;
  io::TimePoint since_;
  std::string said_;
};

}  // namespace lockstep::agent
