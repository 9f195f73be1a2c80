// An agent's way to a good connection with the hub: a dialer, and on each of its connections the
// greeting and the proof of the job token.
#pragma once

#include "base/error.h"
#include "io/dialer.h"
#include "io/fd.h"
#include "io/loop.h"
#include "rendezvous/hub/hub_auth.h"
#include "rendezvous/hub/hub_stream.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous::hub {

struct HubDialSettings {
  std::string host;
  int port = 0;
  std::string run_id;
  std::optional<std::string> token;
  Nonce agent{};
  std::string name;
  std::chrono::milliseconds patience{60'000};  // in all
  // If every attempt in so long was refused nobody listens there, and the dialing ends earlier.
  std::chrono::milliseconds refused_patience{60'000};
  // How long it is patient with a hub of another job: the port's last job may just be ending.
  std::chrono::milliseconds other_job_patience{5'000};
};

class HubDial {
 public:
  struct Connected {
    std::unique_ptr<HubStream> stream;
    Welcome welcome;
    std::string local_address;
  };
  using Done = std::function<void(Result<Connected>)>;

  // `done` comes from the loop, at most once.
  HubDial(io::Loop& loop, HubDialSettings settings, Done done);
  HubDial(const HubDial&) = delete;
  HubDial& operator=(const HubDial&) = delete;

  // What the last attempt met, or how far the first one is; the place is not named.
  std::string trouble() const;
  // After each attempt at all addresses that came to nothing.
  void on_attempt(std::function<void(const Error&)> fn) { on_attempt_ = std::move(fn); }

 private:
  void greet(io::Fd fd);
  Mac proof(Side side) const;
  void on_frame(Frame frame);
  void on_refusal(const Refusal& refusal);
  void on_ended(const Error& error);
  void probe(io::Fd fd);
  void read_probe();
  void next_address(Error error, bool answered = false);
  void give_up(Error error);
  std::string what() const;
  void drop();

  io::Loop& loop_;
  HubDialSettings settings_;
  Done done_;
  std::function<void(const Error&)> on_attempt_;
  io::Fd fd_;
  std::unique_ptr<io::Watch> watch_;  // after fd_: goes first
  std::unique_ptr<HubStream> stream_;
  io::Timer timer_;
  io::Dialer dialer_;
  std::optional<io::TimePoint> other_job_since_;
  Nonce nonce_{};
  std::optional<Nonce> hub_nonce_;
};

}  // namespace lockstep::rendezvous::hub
