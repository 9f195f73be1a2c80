// The end of a job on this node as a table: stage x event -> stage + actions. Pure: the driver
// (end_of_job.h) feeds what happened and carries out what comes back; nothing here knows processes,
// time, other nodes or text.
//
// The stages run on the loop, so that output is still read and signals are still heard: somebody
// who asks for the end a second time ends the wait of the stage under way.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace lockstep::agent {

class Conclusion {
 public:
  using Duration = std::chrono::milliseconds;

  // Processes that outlive their worker (a logger that uploads its last lines) may finish in this
  // time, where the job went well.
  static constexpr Duration kLeftoverGrace{2000};
  // The time that the kernel has to end killed processes.
  static constexpr Duration kKillLimit{10'000};
  // The time in which the other nodes send their reports: what they have to say is small and known.
  static constexpr Duration kReportTime{3000};
  // A departure that takes longer than this is told.
  static constexpr Duration kQuietDeparture{5000};
  static constexpr Duration kLeastConsoleTime{1000};

  enum class Stage {
    not_begun,
    leftover_grace,  // processes that workers left behind were asked to end
    killing_leftovers,
    exchanging_reports,  // with the other nodes
    leaving,             // until the other nodes have what they need of this one
    staying,             // ... which takes longer than usual
    draining_console,
    done,
  };

  enum class Event {
    leftovers_gone,  // what can't be ended has been named
    reports_came,
    departed,
    console_drained,
    time_over,    // of the armed timer
    hurry,        // somebody asks for the end again: wait no longer in this stage
    no_patience,  // asked twice, or the guardian is gone: wait in no stage any more
  };

  enum class Act {
    arm,  // time_over after `time`; replaces the one before
    terminate_leftovers,
    watch_leftovers,  // leftovers_gone as soon as none is left
    kill_leftovers,   // leftovers_gone when they are, after `time` at the latest
    say_leftovers,    // that there were some, and that they were ended
    exchange_reports,
    tell_outcome,  // print the report, write it down
    leave,
    say_staying,    // that it takes long, for `time` more at most
    close,          // release all but the console
    watch_console,  // console_drained as soon as all is written
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

  // What is known when the last worker has ended.
  struct Facts {
    std::size_t leftovers = 0;       // processes that the workers left behind
    bool succeeded = false;          // leftovers have a time of grace
    bool exchanges_reports = false;  // the job failed, and there are other nodes
    bool in_rendezvous = false;      // there is something to leave
  };

  explicit Conclusion(Limits limits) : limits_(limits) {}

  Actions begin(const Facts& facts);
  Actions on(Event event);

  Stage stage() const { return stage_; }

 private:
  // Whether a stage may wait, after somebody has asked for the end again.
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
