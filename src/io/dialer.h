// Connects to a TCP server that may not be up yet: looks up the name, tries its addresses in turn,
// pauses and starts again as long as its rules allow. The owner checks the new connection, and
// sends the dialer on if the peer's answer is wrong.
#pragma once

#include "base/error.h"
#include "io/dial_course.h"
#include "io/fd.h"
#include "io/loop.h"
#include "io/resolve.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::io {

// No event comes from inside the constructor or hurry(). Call go_on() and once_more() from
// callbacks of the loop: the next event may come from inside them. An event may destroy the dialer.
// A destroyed dialer is silent.
class Dialer {
 public:
  struct Target {
    std::string what;  // start of its errors: "connect to the store at HOST:PORT"
    std::string host;
    int port = 0;
  };
  struct Events {
    // Hands over a connected, non-blocking descriptor. The dialer then waits for go_on() or
    // once_more().
    std::function<void(Fd)> connected;
    // All addresses failed. A pause follows, then the next round.
    std::function<void(const Error&)> round_failed;
    std::function<void(Error)> gave_up;
  };
  enum class Stage { looking_up, connecting, connected, pausing };

  Dialer(Loop& loop, Target target, const DialRules& rules, Events events);
  ~Dialer();
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

  // Call after `connected`: leaves this address for the next one. `answered`: see
  // DialCourse::failed().
  void go_on(Error error, bool answered = false);
  // Call after `connected`: connects again to the same address, and reports to this `connected`
  // only.
  void once_more(std::function<void(Fd)> connected);
  // The host has shown that it is up: starts the next round without the rest of a pause.
  void hurry();

  Stage stage() const { return stage_; }
  // Start and end of the current look-up or attempt. A greeting is part of the attempt.
  TimePoint step_since() const { return step_since_; }
  TimePoint step_until() const { return step_since_ + allowed_; }
  TimePoint since() const { return course_.since(); }
  TimePoint until() const { return course_.until(); }
  // The error of the last failed attempt.
  const std::optional<Error>& error() const { return course_.error(); }
  // Formats, for the current address: "no answer from ADDRESS:PORT (SYN unanswered, e.g. a
  // firewall)".
  std::string unanswered() const;
  // Returns the current address.
  std::string address() const;

 private:
  void begin_round();
  void look_up();
  void found(Resolved resolved);
  void follow(DialCourse::Step step);
  void open(std::function<void(Fd)> connected);
  void on_writable(const std::function<void(Fd)>& connected);
  void failed(Error error);
  void drop();

  Loop& loop_;
  Target target_;
  Events events_;
  DialCourse course_;
  Stage stage_ = Stage::pausing;
  TimePoint step_since_{};
  Duration allowed_{};
  std::vector<Address> addresses_;
  std::unique_ptr<Lookup> lookup_;
  Fd fd_;
  std::unique_ptr<Watch> watch_;  // declared after fd_, so that it is destroyed first
  Timer timer_;                   // end of the current step
};

}  // namespace lockstep::io
