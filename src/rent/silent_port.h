// Distinguishes a slowly booting machine from a network that blocks outgoing port 22: probes a
// public SSH server once. Firewalls drop such connections or refuse them, so both count as blocked.
#pragma once

#include "io/loop.h"
#include "io/resolve.h"
#include "rent/sshd_probe.h"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::rent {

class SilentPort {
 public:
  // known: "HOST:PORT" of a server that is always up; "" turns the probe off.
  SilentPort(io::Loop& loop, std::string known) : loop_(loop), known_(std::move(known)) {}
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  // Returns a line about a port without an SSH server. why: the error of the last try. The first
  // call starts the probe of the known server. Later calls include the result.
  std::string words(const std::string& address, int port, std::chrono::milliseconds silent_for,
                    std::string_view why);

  // Returns github.com:22, or the value of LOCKSTEP_SSH_PROBE. "none" returns "".
  static std::string known_server();

 private:
  enum class Found { not_asked, asking, answers, blocked };

  void ask();
  void on_resolved(Result<io::Resolved> resolved, int port);

  io::Loop& loop_;
  std::string known_;
  Found found_ = Found::not_asked;
  std::string blocked_by_;  // the error of the probe
  std::unique_ptr<io::Lookup> lookup_;
  std::unique_ptr<SshdProbe> probe_;
};

// Stops renting after two machines in a row whose SSH server never answered. One such machine may
// be broken. After two, each further machine would only cost money.
class SilentMachines {
 public:
  // silent: the last machine's SSH server never answered. Returns true if renting must stop.
  bool note(bool silent);

 private:
  static constexpr int kMost = 2;
  int in_a_row_ = 0;
};

}  // namespace lockstep::rent
