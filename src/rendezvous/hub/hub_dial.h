// Connects an agent to the hub: dials all addresses, and on each connection exchanges the greeting
// and the proofs of the job token.
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
  // Dialing ends early if every attempt was refused for this long: nothing listens there.
  std::chrono::milliseconds refused_patience{60'000};
  // How long to retry at a hub of another job: the previous job on the port may be ending.
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

  // Calls `done` from the loop, at most once.
  HubDial(io::Loop& loop, HubDialSettings settings, Done done);
  HubDial(const HubDial&) = delete;
  HubDial& operator=(const HubDial&) = delete;

  // Returns what went wrong in the last attempt, or the state of the first one, without the place.
  std::string trouble() const;
  // Sets a function to call after each failed attempt at all addresses.
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
  std::unique_ptr<io::Watch> watch_;  // declared after fd_, so destroyed first
  std::unique_ptr<HubStream> stream_;
  io::Timer timer_;
  io::Dialer dialer_;
  std::optional<io::TimePoint> other_job_since_;
  Nonce nonce_{};
  std::optional<Nonce> hub_nonce_;
};

}  // namespace lockstep::rendezvous::hub
