// One connection between two nodes of a job during the pre-flight. Every message carries a MAC that
// proves the sender has the job's token. The dialing side speaks first, so a foreign program that
// connects hears nothing.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "codec/wire.h"
#include "io/fd.h"
#include "io/loop.h"
#include "rendezvous/hub/hub_auth.h"

#include <functional>
#include <string>
#include <string_view>

namespace lockstep::slurm {

// Kinds of messages; the numbers are on the wire.
enum class PreflightKind : std::uint8_t {
  hello = 1,     // from the dialing node: its index in the list of nodes
  welcome = 2,   // the answer: the other node's index
  facts = 3,     // facts_text()
  decision = 4,  // decision_text()
};

class PreflightStream {
 public:
  struct Events {
    std::function<void(PreflightKind, std::string_view)> message;
    std::function<void(const Error&)> ended;  // closed, broken or invalid; the last event
  };
  enum class Side { dials, accepts };

  // fd: a connected socket, owned from now on. token, job: must be equal on both nodes.
  PreflightStream(io::Loop& loop, io::Fd fd, Side side, std::string token, std::string job,
                  Events events);
  PreflightStream(const PreflightStream&) = delete;
  PreflightStream& operator=(const PreflightStream&) = delete;

  // Queues a message. Until the greeting has arrived only one message may be sent; it waits.
  void send(PreflightKind kind, std::string_view body);

 private:
  using Nonce = rendezvous::hub::Nonce;

  void on_event(int events);
  bool take(std::string_view bytes);
  bool take_greeting(std::string_view& bytes);
  bool take_frame(std::string_view content);
  rendezvous::hub::Mac proof(bool of_dialer, std::string_view content) const;
  void put(std::string_view bytes);
  void flush();
  void end(const Error& error);

  io::Fd fd_;
  io::Watch watch_;  // declared after fd_: destroyed first
  Side side_;
  std::string token_;
  std::string job_;
  Events events_;
  Nonce own_{};
  Nonce other_{};
  bool greeted_ = false;
  std::string greeting_;  // the other side's greeting, as far as received
  std::string waiting_;   // message to send after the greeting, without its MAC
  codec::wire::FrameCutter cutter_;
  std::string unsent_;
  CallbackScope calls_;
};

}  // namespace lockstep::slurm
