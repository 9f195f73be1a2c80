// Tells apart a machine that boots slowly from a network that blocks outgoing port 22: asks once
// whether a public SSH server is reached from here.
#pragma once

#include "cluster/sshd_probe.h"
#include "io/loop.h"
#include "io/resolve.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace lockstep::cluster {

class SilentPort {
 public:
  // known: "HOST:PORT" of a server that is always there; "" asks nobody.
  SilentPort(io::Loop& loop, std::string known) : loop_(loop), known_(std::move(known)) {}
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  // One line about a port that has not answered for so long. The first call asks the known server,
  // later calls have what was found.
  std::string words(const std::string& address, int port, std::chrono::milliseconds silent_for);

  // github.com:22, or what LOCKSTEP_SSH_PROBE names; "none" is none.
  static std::string known_server();

 private:
  enum class Found { not_asked, asking, answers, silent };

  void ask();
  void on_resolved(Result<io::Resolved> resolved, int port);

  io::Loop& loop_;
  std::string known_;
  Found found_ = Found::not_asked;
  std::unique_ptr<io::Lookup> lookup_;
  std::unique_ptr<SshdProbe> probe_;
};

// Whether renting goes on after a machine that nobody has heard of: the first may be broken, a
// second in a row means that this machine's network lets no such connection out.
class SilentMachines {
 public:
  // True: renting must stop.
  bool note(bool heard);

 private:
  static constexpr int kMost = 2;
  int in_a_row_ = 0;
};

}  // namespace lockstep::cluster
