// The end of a job on this node as a table: stage x event -> stage + actions. Pure: the driver
// (end_of_job.h) feeds events and carries out the returned actions. Nothing here knows processes,
// time, other nodes or text.
//
// The stages run on the event loop, so output is still read and signals are still handled: a user
// who asks for the end a second time cuts short the wait of the current stage.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace lockstep::agent {

class Conclusion {
 public:
  using Duration = std::chrono::milliseconds;

  // After a success, processes that outlive their worker (a logger that uploads its last lines) get
  // this much time to finish.
  static constexpr Duration kLeftoverGrace{2000};
  // Time for the kernel to end killed processes.
  static constexpr Duration kKillLimit{10'000};
  // Time for the other nodes to send their reports. Reports are small and already known, so it is
  // short.
  static constexpr Duration kReportTime{3000};
  // A departure that takes longer than this is announced to the user.
  static constexpr Duration kQuietDeparture{5000};
  // Lower limit for writing out the console, even with a shorter --shutdown-timeout.
  static constexpr Duration kLeastConsoleTime{1000};

  enum class Stage {
    not_begun,
    leftover_grace,  // processes that workers left behind got SIGTERM
    killing_leftovers,
    exchanging_reports,  // with the other nodes
    leaving,             // until the other nodes have all they need from this node
    staying,             // leaving takes longer than usual
    draining_console,
    done,
  };

  enum class Event {
    leftovers_gone,  // or the unkillable ones were named
    reports_came,
    departed,
    console_drained,
    time_over,    // the armed timer fired
    hurry,        // a repeated request to end: skip the wait of this stage
    no_patience,  // the job was killed at once, or the guardian died: skip all waits
  };

  enum class Act {
    arm,  // feed time_over after `time`; replaces the previous timer
    terminate_leftovers,
    watch_leftovers,  // feed leftovers_gone as soon as none is left
    kill_leftovers,   // feed leftovers_gone when all are gone, after `time` at the latest
    say_leftovers,    // log that leftovers existed and were ended
    exchange_reports,
    tell_outcome,  // print the report, write the report files
    leave,
    say_staying,    // warn that leaving takes long, at most `time` more
    close,          // release everything but the console
    watch_console,  // feed console_drained as soon as all output is written
    stop,
  };

  struct Action {
    Act act;
    Duration time{0};
    bool operator==(const Action&) const = default;
  };
  using Actions = std::vector<Action>;

  struct Limits {
    Duration shutdown;  // --shutdown-timeout
    Duration leave;     // close_timeout
  };

  // Facts known when the last worker has ended.
  struct Facts {
    std::size_t leftovers = 0;       // processes that the workers left behind
    bool succeeded = false;          // then leftovers get a grace period
    bool exchanges_reports = false;  // the job failed, and there are other nodes
    bool in_rendezvous = false;      // this node still has a rendezvous to leave
  };

  explicit Conclusion(Limits limits) : limits_(limits) {}

  // Starts the first stage. Call once. Returns the actions to carry out, in order.
  Actions begin(const Facts& facts);
  // Moves the table on. Returns the actions to carry out, in order. Empty: the event does not
  // matter in this stage.
  Actions on(Event event);

  Stage stage() const { return stage_; }

 private:
  // How much waiting is left to a stage after the user has asked again for the end.
  enum class Patience { usual, not_in_this_stage, none };

  Actions on_not_begun(Event event);
  Actions on_leftover_grace(Event event);
  Actions on_killing(Event event);
  Actions on_exchange(Event event);
  Actions on_leaving(Event event);
  Actions on_draining(Event event);
  Actions kill_leftovers();
  Actions exchange_reports();
  Actions leave();
  Actions close();
  Actions finish();
  void renew_patience();

  Limits limits_;
  Facts facts_;
  Stage stage_ = Stage::not_begun;
  Patience patience_ = Patience::usual;
};

}  // namespace lockstep::agent
