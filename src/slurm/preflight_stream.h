// One connection of two nodes of a job during its pre-flight. Every message carries a proof that
// its sender has the job's token. Who dials speaks first: a program that is none of ours hears
// nothing.
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

// What a message is; the numbers are on the wire.
enum class PreflightKind : std::uint8_t {
  hello = 1,     // the sender's place in the list of nodes, by who dials
  welcome = 2,   // the same, in answer
  facts = 3,     // facts_text()
  decision = 4,  // decision_text()
};

class PreflightStream {
 public:
  struct Events {
    std::function<void(PreflightKind, std::string_view)> message;
    std::function<void(const Error&)> ended;  // closed, broken or nonsense; nothing comes after it
  };
  enum class Side { dials, accepts };

  // fd: a connected socket. token, job: of the job; both nodes must have the same.
  PreflightStream(io::Loop& loop, io::Fd fd, Side side, std::string token, std::string job,
                  Events events);
  PreflightStream(const PreflightStream&) = delete;
  PreflightStream& operator=(const PreflightStream&) = delete;

  // Before the other side has greeted one message at most, which waits for that.
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
  io::Watch watch_;  // after fd_: goes first
  Side side_;
  std::string token_;
  std::string job_;
  Events events_;
  Nonce own_{};
  Nonce other_{};
  bool greeted_ = false;
  std::string greeting_;  // of the other side, as far as it has come
  std::string waiting_;   // what is sent once it has, without proof
  codec::wire::FrameCutter cutter_;
  std::string unsent_;
  CallbackScope calls_;
};

}  // namespace lockstep::slurm
