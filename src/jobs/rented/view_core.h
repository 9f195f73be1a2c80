// Decides what the terminal of a rented job does next: the course of the job runs in its own
// process, and the terminal only shows it. Pure. The driver reads the journal and the log, and
// carries the steps out.
#pragma once

#include "base/backoff.h"
#include "cloud/rented_job.h"

#include <chrono>
#include <optional>

namespace lockstep::jobs::rented {

enum class ViewStep {
  go_on,        // show what comes
  cancel,       // tell the course that the user cancels the job
  start_again,  // after pause(): start another process for the course
  give_up,      // the processes of the course die again and again: no process follows the job now
  leave,        // the job goes on without this terminal
  finish,       // show the rest, and drop the record of the job if it has ended
  stop,         // the job has ended; the user does not want to see the rest
};

class ViewCore {
 public:
  // detaches: the view ends once the job has started.
  explicit ViewCore(bool detaches);

  // record: what the journal says of the job now; nullopt: it has no record any more, as after
  // `lockstep down`.
  using Record = std::optional<cloud::RentedJob>;

  ViewStep on_signal(int number, const Record& record);
  // The process of the course has ended. exit_code: as in a shell. lived: since its start.
  ViewStep on_course_end(int exit_code, const Record& record, std::chrono::milliseconds lived);
  // Call this often. ready: the course's process handles signals. started: the job runs or is
  // queued.
  ViewStep on_look(bool ready, bool started);
  // Returns whether on_look() can return more than go_on now: reading the journal is not free.
  bool is_waiting() const { return detaches_ || unsent_ > 0; }

  // Returns the exit code. Valid after leave, give_up or finish.
  int code() const { return code_; }
  std::chrono::milliseconds pause() const { return pause_; }

 private:
  bool detaches_;
  Backoff pauses_;
  std::chrono::milliseconds pause_{0};
  int starts_ = 0;   // further processes of the course
  int cancels_ = 0;  // signals so far
  int unsent_ = 0;   // signals that were not sent to the course yet
  int code_ = 1;
};

}  // namespace lockstep::jobs::rented
