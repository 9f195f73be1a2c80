// One attempt at a TCP connection: looks the name up, tries its addresses in turn.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "io/resolve.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::io {

// "HOST:PORT", an IPv6 address in brackets.
std::string place_text(const std::string& host, int port);
// Of a connection attempt: "no answer from ADDRESS:PORT (SYN unanswered, e.g. a firewall)".
std::string unanswered_text(const Address& to, int port);

// Destroying it forgets the attempt; `done` is never called then, and may destroy it itself. The
// descriptor is non-blocking, sends without delay, and has TCP's own probes on, so that a host that
// vanished without a word is noticed within 20 s.
class Dial {
 public:
  using Done = std::function<void(Result<Fd>)>;

  // Errors name the host, what was tried and the errno; one comes within `timeout`.
  Dial(Loop& loop, std::string host, int port, Duration timeout, Done done);
  ~Dial();
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;

 private:
  void begin();
  void try_next();
  void on_event();
  void failed(Error error);
  void finish(Result<Fd> result);

  Loop& loop_;
  std::string host_;
  int port_;
  TimePoint until_;
  Done done_;
  std::vector<Address> addresses_;
  std::size_t next_ = 0;
  std::optional<Error> error_;
  std::unique_ptr<Lookup> lookup_;
  Fd fd_;
  std::unique_ptr<Watch> watch_;  // after fd_: goes first
  Timer timer_;
};

}  // namespace lockstep::io
