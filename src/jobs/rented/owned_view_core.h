// Decides what the view of a job does whose rental another host owns: shows what the host's
// `lockstep host-rental follow` prints, and asks for another view when the link breaks. Pure. The
// driver in owned_view.cc opens the links and prints.
#pragma once

#include "base/backoff.h"
#include "io/loop.h"
#include "link/channel.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::rented {

struct OwnedViewAction {
  enum class Kind {
    open,    // open a link, and start a view there; see must_cancel() and canceled()
    cancel,  // send SIGINT to the view on the host, which cancels the job
    say,     // tell the user `text`
    finish,  // print the rest, and return outcome()
  };
  Kind kind;
  std::string text = {};
};
using OwnedViewActions = std::vector<OwnedViewAction>;

struct OwnedViewEnd {
  // Exit code of the view on the host. Says nothing about the job: only its record there does.
  std::optional<int> code = {};
  int signal = 0;         // the user's signal that ended the view here; 0: none
  int canceled_by = 0;    // the user's first signal that has canceled the job; 0: none
  std::string lost = {};  // why the host was not reached any more
};

class OwnedViewCore {
 public:
  enum class OnStop {
    cancel,  // Ctrl-C cancels the job
    leave,   // Ctrl-C ends the view alone
  };
  struct Settings {
    std::string cluster = {};
    std::string host = {};
    OnStop on_stop = OnStop::cancel;
    bool canceled = false;  // the user has canceled the job before the view began
    bool met = false;       // this command has reached the host before
  };
  using Time = io::TimePoint;

  explicit OwnedViewCore(Settings settings);

  OwnedViewActions start(Time now);
  OwnedViewActions on_started(Time now);
  // The view on the host has sent output.
  OwnedViewActions on_output();
  // The view on the host has ended, or the link was lost.
  OwnedViewActions on_end(const link::ChannelEnd& end, Time now);
  OwnedViewActions on_signal(int number);
  // The course has got a Ctrl-C of the user, as the view on the host says.
  void on_told();
  // Call this at next_tick() or later.
  OwnedViewActions tick(Time now);
  Time next_tick() const;  // max(): never

  // Returns whether a new view on the host must cancel the job first. A course that has got one
  // Ctrl-C must not get another unless the user says so: it would kill workers that save their
  // state.
  bool must_cancel() const { return untold_ > 0; }
  bool canceled() const { return stops_ > 0; }
  // Valid once `finish` was returned.
  const OwnedViewEnd& outcome() const { return outcome_; }

  // A host that is silent for longer is given up.
  static constexpr std::chrono::seconds kPatience{60};

 private:
  void open();
  void steady();
  void failed(const std::string& why, Time now);
  void finish();
  void say(std::string text);
  OwnedViewActions taken();

  Settings settings_;
  Backoff pauses_;
  bool running_ = false;          // a view runs on the host
  bool opened_canceled_ = false;  // the present view has canceled the job from its start
  bool finishing_ = false;
  int stops_ = 0;                   // signals that cancel the job
  int untold_ = 0;                  // stops that the course may not have received
  std::optional<Time> away_since_;  // the link is lost since then
  std::optional<Time> reopen_at_;
  std::optional<Time> steady_at_;  // from then on the running view counts as back
  OwnedViewEnd outcome_;
  OwnedViewActions actions_;
};

}  // namespace lockstep::jobs::rented
