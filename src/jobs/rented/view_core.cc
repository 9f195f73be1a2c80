#include "jobs/rented/view_core.h"

#include <signal.h>

namespace lockstep::jobs::rented {
namespace {

using std::chrono::milliseconds;
using Stage = cloud::RentedJob::Stage;

// As the guard does, give up after so many processes that ended before the job.
constexpr int kMostStarts = 8;
constexpr Backoff::Rules kPauses{.first = milliseconds(200), .longest = milliseconds(30'000)};
// A process that has lived for so long does not belong to a row of failures.
constexpr milliseconds kLongLife{20LL * 60'000};
constexpr int kSignalsToLeave = 3;
constexpr int kSignalBase = 128;

bool cancels(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGQUIT;
}

}  // namespace

ViewCore::ViewCore(bool detaches) : detaches_(detaches), pauses_(kPauses) {}

ViewStep ViewCore::on_signal(int number, const Record& record) {
  // A closed terminal says nothing about the job.
  const bool closed = number == SIGHUP;
  if (!closed && !cancels(number)) return ViewStep::go_on;
  if (!record || record->stage == Stage::ended) {
    code_ = kSignalBase + number;
    return ViewStep::stop;
  }
  // The machines are being terminated: a user who cancels can ask for no more than that.
  const bool ending = record->stage == Stage::ending;
  if (closed || ending || ++cancels_ >= kSignalsToLeave) {
    code_ = kSignalBase + number;
    return ViewStep::leave;
  }
  ++unsent_;
  return ViewStep::go_on;
}

ViewStep ViewCore::on_course_end(int exit_code, const Record& record, milliseconds lived) {
  if (!record || record->stage == Stage::ended) {
    code_ = record && record->stage == Stage::ended ? record->code : exit_code;
    return ViewStep::finish;
  }
  if (lived >= kLongLife) {
    starts_ = 0;
    pauses_.reset();
  }
  if (++starts_ > kMostStarts) {
    code_ = 1;
    return ViewStep::give_up;
  }
  // The next process does not know that the user has canceled the job.
  unsent_ = cancels_ > 0 ? 1 : 0;
  pause_ = pauses_.next();
  return ViewStep::start_again;
}

// A signal that comes before the course's process handles signals would kill that process, so the
// cancellation waits.
ViewStep ViewCore::on_look(bool ready, bool started) {
  if (unsent_ > 0 && ready) {
    --unsent_;
    return ViewStep::cancel;
  }
  // After Ctrl-C the user wants to see the end.
  if (!detaches_ || !started || cancels_ > 0) return ViewStep::go_on;
  code_ = 0;
  return ViewStep::leave;
}

}  // namespace lockstep::jobs::rented
