// A node that waits for others says for whom, again and again: first soon, then every ten seconds,
// then seldom where there is nothing new (a spare may wait for days).
#pragma once

#include "io/loop.h"
#include "rendezvous/backend.h"

#include <chrono>
#include <cstddef>
#include <string>

namespace lockstep::agent {

// Of what other nodes say, or are called.
inline constexpr std::size_t kMostWords = 2000;

class WaitNotices {
 public:
  explicit WaitNotices(io::Loop& loop) : timer_(loop) {}

  // Until cancel(), which must come before the backend is destroyed.
  void start(const rendezvous::Backend& backend);
  // The same for a node that has done its own part and stays for others.
  void start_staying(const rendezvous::Backend& backend);
  void cancel() { timer_.cancel(); }

  // Somebody has read the last notice, and wants to read how the wait ended.
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
