#include "jobs/rented/course.h"

#include <utility>

namespace lockstep::jobs::rented {
namespace {

int failed(int code) {
  return code == 0 ? 1 : code;
}

}  // namespace

Step Course::to(Step step) {
  step_ = step;
  return step;
}

Step Course::first() {
  if (record_.ending) {
    job_code_ = record_.code;
    return end();
  }
  if (!record_.succeeded) return begin();
  job_code_ = code_ = 0;
  return finish(true);
}

Step Course::begin() {
  return to(record_.working ? Step::run : Step::check_begin);
}

Step Course::next(const Seen& seen) {
  switch (step_) {
    case Step::check_begin:
      return seen.ok ? to(Step::rent) : stop_with(seen);
    case Step::rent:
      return after_rent(seen);
    case Step::run:
      return after_run(seen);
    case Step::ask_loss:
      return after_loss(seen);
    case Step::save:
      return after_save(seen);
    case Step::note_loss:
      record_.working = record_.started = false;
      if (seen.asked_to_leave) return to(Step::leave);
      return seen.asked_to_end ? finish(false) : begin();
    case Step::note_success:
      return seen.asked_to_leave ? to(Step::leave) : finish(true);
    case Step::bring_back:
      return after_bring(seen);
    case Step::hold:
      return after_hold(seen);
    case Step::note_end:
      // Without the note another process would run the job again; the machines cost more.
      return to(Step::terminate);
    case Step::terminate:
      return after_terminate(seen);
    case Step::leave:
    case Step::conclude:
    case Step::quit:
      break;
  }
  return to(Step::quit);
}

Step Course::after_rent(const Seen& seen) {
  // The user has terminated the machines meanwhile, and wants no new ones.
  if (!seen.ok && seen.unwanted) return finish(false);
  if (!seen.ok) return stop_with(seen);
  record_.working = true;
  if (seen.asked_to_leave) return to(Step::leave);
  return seen.asked_to_end ? finish(false) : to(Step::run);
}

Step Course::after_run(const Seen& seen) {
  if (!seen.ok) return stop_with(seen);
  ran_ = seen;
  job_code_ = code_ = seen.code;
  // The machine has the only other record of a success, and may be preempted at any time.
  if (!seen.left && job_code_ == 0 && ran_.started) return to(Step::note_success);
  if (seen.left || seen.asked_to_leave) return to(Step::leave);
  // A job does not start again after a person ended it: no need to ask why.
  if (job_code_ == 0 || ran_.canceled_job || seen.asked_to_end) return finish(ran_.started);
  return to(Step::ask_loss);
}

Step Course::after_loss(const Seen& seen) {
  if (!seen.taken) return finish(ran_.started);
  // A job that never started has no outputs to save.
  return ran_.started ? to(Step::save) : after_save(seen);
}

Step Course::after_save(const Seen& seen) {
  if (seen.asked_to_leave) return to(Step::leave);
  if (seen.asked_to_end) {
    // Ctrl-C may have cut the transfer off. The machine may still be there: bring the outputs
    // again.
    return seen.whole ? end() : finish(ran_.started);
  }
  return to(Step::note_loss);
}

Step Course::finish(bool started) {
  return started && rules_.brings_back ? to(Step::bring_back) : end();
}

Step Course::after_bring(const Seen& seen) {
  if (seen.ok) return end();
  if (seen.gone) return without_outputs();
  // Leave the outputs to another follower: a machine with them still exists.
  return seen.asked_to_leave ? to(Step::leave) : to(Step::hold);
}

Step Course::after_hold(const Seen& seen) {
  if (seen.ok) return conclude(failed(job_code_));
  return seen.asked_to_leave ? to(Step::leave) : without_outputs();
}

// Ends a job whose outputs are lost: such a job did not succeed.
Step Course::without_outputs() {
  job_code_ = failed(job_code_);
  return end();
}

Step Course::end() {
  code_ = job_code_;
  return to(Step::note_end);
}

Step Course::after_terminate(const Seen& seen) {
  elsewhere_ = seen.elsewhere;
  // Another process finds the note of the end and terminates the machines.
  if (!seen.ok && seen.asked_to_leave) return to(Step::leave);
  // The user canceled the job while its machines were being terminated: go on with that.
  if (!seen.ok && seen.canceled) return to(Step::terminate);
  return conclude(seen.ok ? job_code_ : failed(job_code_));
}

Step Course::conclude(int code) {
  code_ = stopped_.value_or(code);
  return to(Step::conclude);
}

// Leave a started job of unknown state to another process, unless the user wants the job to end. A
// job that never started ends here.
Step Course::stop_with(const Seen& seen) {
  // Exit code 2 is a promise: nothing was rented.
  stopped_ = code_ = seen.error_code == 2 ? 1 : seen.error_code;
  if (seen.asked_to_leave || (seen.started && !seen.asked_to_end)) return to(Step::leave);
  job_code_ = 1;
  return finish(seen.started);
}

}  // namespace lockstep::jobs::rented
