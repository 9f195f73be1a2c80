// Decides what a client makes of the answers of the host that owns its job's rental, and what that
// host keeps for the client. Pure.
#pragma once

#include "base/error.h"
#include "cloud/rented_job.h"
#include "jobs/job_status.h"
#include "jobs/rented/owner_talk.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::jobs::rented {

// Returns the error of a request whose command has ended on the host with this code, not 0. err:
// what the command printed on stderr, whose last line is that of print_error(). stop: the user's
// signal that this process has seen meanwhile; 0: none. Error::sys is the signal that has ended the
// command. Codes: canceled (by the user), invalid_input, denied, unavailable (the command was
// killed: it may have done what it was asked to do).
Error error_of_ask(const std::string& host, int code, std::string_view err, int stop);

// Returns "MESSAGE; HINT".
std::string error_line(const Error& error);

// How far a request to the host came.
enum class Asked {
  never,       // the host never got it
  unanswered,  // the host may have got it, and its command may run still
  ended,       // its command has ended there
};

// What becomes of the record of a job whose begin has failed.
enum class FailedBegin {
  forget,  // the job never began, and never will
  keep,    // the job may have begun, or may begin still
  cancel,  // the job may have begun although the user has canceled it
};
// known: the host has a record of the job; nullopt: the host did not answer.
FailedBegin after_failed_begin(const Error& error, Asked asked, std::optional<bool> known);
// Returns whether the signal says that the user wants the end of the job.
bool is_cancel(int signal);

// The next step of a client that wants to settle a job.
enum class OwnedStep {
  wait,              // the job goes on, or may begin still
  settle,            // bring the outputs, tell the end, forget the job
  bring_and_forget,  // the host has no record any more: `lockstep down` may have ended the job
  forget,            // the job never began
};
OwnedStep next_step(const cloud::RentedJob& job, const OwnedState& there, std::int64_t now_ms);
// Returns the exit code of a job that has ended. A job whose outputs are missing here has failed.
int settled_code(const OwnedState& there, bool all_brought);
// Returns the exit code for the user. canceled_by: the signal by which the user has canceled the
// job here; 0: none. The course gets SIGINT for every such signal.
int code_for_user(int code, int canceled_by);

// Returns the state of an ended job for `wait --json` and `cancel`.
JobState ended_state(int code, bool was_canceled);

// Returns whether the host may drop the record of a client's job, 30 days after its end. log_ms:
// when the log was last written.
bool is_long_over(const cloud::RentedJob& job, std::optional<std::int64_t> log_ms,
                  std::int64_t now_ms);

// Returns whether a command about a client's rental may use the name on this host. there: the
// rental that has the name on this host. elsewhere: another host owns a job of that name.
Status check_name_is_of(const std::string& rental, const std::string& name,
                        const std::optional<std::string>& there, bool elsewhere);

// Notices that no process has followed a job for a while. The guard starts another process for the
// course within that time, unless it fails to.
class Unfollowed {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // followed: a process follows the job now. Returns whether none has for kPatience.
  bool look(bool followed, Time now);

  static constexpr std::chrono::seconds kPatience{60};

 private:
  std::optional<Time> since_;
};

}  // namespace lockstep::jobs::rented
