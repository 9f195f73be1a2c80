// The course of a job on rented machines, from wherever its journal record stands: rent, run, bring
// the outputs back, start again elsewhere if machines are lost, terminate the machines, note the
// end. Pure. A driver in a background process carries out one step at a time and reports what it
// saw. The process may die between any two steps; another process then makes a Course from the
// journal's record.
#pragma once

#include <optional>

namespace lockstep::jobs::rented {

enum class Step {
  check_begin,   // check for the job's environment variables in this process
  rent,          // rent machines: of an earlier request, else new ones
  run,           // start the job there, or follow the running job; until its end
  ask_loss,      // ask whether the machines were preempted, or are about to be
  save,          // bring the outputs of a job without its machines
  note_loss,     // note in the journal: the job starts again
  note_success,  // note in the journal, before anything else: the job has ended well
  bring_back,    // bring the outputs of an ended job
  hold,          // keep the machine for a while: no other copy of the outputs exists
  note_end,      // write into the journal how the job ended
  terminate,     // terminate the machines
  leave,         // the job continues without this process; another goes on from the journal
  conclude,      // note how the job ended, for its viewer or the next command
  quit,
};

// The journal's facts about the job.
struct CourseRecord {
  bool working = false;    // the machines run
  bool ending = false;     // the job ended with `code`; its machines are to be terminated
  bool started = false;    // the job has an id, so it may run on its machines
  bool succeeded = false;  // the job has ended well; its outputs may still be on its machines
  int code = 0;            // valid if `ending`
};

struct CourseRules {
  bool brings_back = false;  // the user named outputs
};

// What the driver saw during the last step. Each step reads only its own members.
struct Seen {
  bool ok = true;             // the step succeeded
  bool canceled = false;      // not `ok`: a signal ended the step
  int error_code = 1;         // not `ok`: the exit code of the error
  bool asked_to_end = false;  // the user canceled the job, now or earlier (SIGINT)
  // This process was asked to end, now or earlier (SIGTERM). That says nothing about the job.
  bool asked_to_leave = false;
  bool unwanted = false;      // rent: the user has terminated the machines meanwhile
  int code = 0;               // run: the exit code
  bool started = false;       // always: the job has an id, so it may run on its machines
  bool left = false;          // run: the following ended before the job
  bool canceled_job = false;  // run: a person canceled the job
  bool gone = false;          // run: a machine will not come back. bring_back: no machine is left
  bool taken = false;         // ask_loss
  bool whole = false;         // save: all outputs are here
  bool elsewhere = false;     // terminate: another lockstep has terminated them
};

class Course {
 public:
  Course(const CourseRecord& record, const CourseRules& rules) : record_(record), rules_(rules) {}

  Step first();
  // Returns the next step. seen: what the driver saw during the last one.
  Step next(const Seen& seen);

  // Returns the exit code known so far. Once `conclude` or `quit` is returned, it is final.
  int code() const { return code_; }
  // Returns the exit code of the job itself, which note_end writes into the journal.
  int job_code() const { return job_code_; }
  bool ended_elsewhere() const { return elsewhere_; }

 private:
  Step to(Step step);
  Step begin();
  Step after_rent(const Seen& seen);
  Step after_run(const Seen& seen);
  Step after_loss(const Seen& seen);
  Step after_save(const Seen& seen);
  Step after_bring(const Seen& seen);
  Step after_hold(const Seen& seen);
  Step without_outputs();
  Step after_terminate(const Seen& seen);
  Step finish(bool started);
  Step conclude(int code);
  Step stop_with(const Seen& seen);
  Step end();
  CourseRecord record_;
  CourseRules rules_;
  Step step_ = Step::quit;
  int code_ = 1;
  int job_code_ = 1;  // of the last attempt
  Seen ran_;          // of the last attempt
  bool elsewhere_ = false;
  // An error stopped the course: its exit code stays whatever the clean-up finds.
  std::optional<int> stopped_;
};

}  // namespace lockstep::jobs::rented
