// Makes a TCP connection to a host that may not be there yet: looks the name up, tries its
// addresses in turn, pauses and begins again as long as its rules allow. What must be said on a new
// connection is the owner's affair: one that dislikes the answer sends the dialer on.
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

// No event comes from inside the constructor or hurry(); go_on() and once_more() are for the loop's
// callbacks, and the next event may come from inside them. An event may destroy the dialer; a
// destroyed one is silent.
class Dialer {
 public:
  struct Target {
    std::string what;  // begins its errors: "connect to the store at HOST:PORT"
    std::string host;
    int port = 0;
  };
  struct Events {
    // Gives a connected, non-blocking descriptor. The dialer rests until it is told to go on.
    std::function<void(Fd)> connected;
    // All addresses came to nothing; there is a pause now, then the next round.
    std::function<void(const Error&)> round_failed;
    std::function<void(Error)> gave_up;
  };
  enum class Stage { looking_up, connecting, connected, pausing };

  Dialer(Loop& loop, Target target, const DialRules& rules, Events events);
  ~Dialer();
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

  // After `connected`: gives this address up for the next one. `answered` is as in DialCourse.
  void go_on(Error error, bool answered = false);
  // After `connected`: connects to the same address again and tells only this `connected`.
  void once_more(std::function<void(Fd)> connected);
  // The host has shown that it is there: the next round begins without the rest of a pause.
  void hurry();

  Stage stage() const { return stage_; }
  // When the look-up, or the attempt at the address, under way began; and when its time is over. A
  // greeting is a part of the attempt.
  TimePoint step_since() const { return step_since_; }
  TimePoint step_until() const { return step_since_ + allowed_; }
  TimePoint since() const { return course_.since(); }
  TimePoint until() const { return course_.until(); }
  // The error of the last attempt that failed.
  const std::optional<Error>& error() const { return course_.error(); }
  // For the address under way: "no answer from ADDRESS:PORT (SYN unanswered, e.g. a firewall)".
  std::string unanswered() const;
  // "ADDRESS" under way.
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
  std::unique_ptr<Watch> watch_;  // after fd_, so that it is destroyed first
  Timer timer_;                   // the end of what is under way
};

}  // namespace lockstep::io
