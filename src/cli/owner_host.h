// Jobs on rented machines that another host owns (`run --on-demand --guard HOST`), from the machine
// of their user. This machine keeps a small record of each: the host, and the files to bring. All
// else is asked there, by `lockstep host-rental`.
#pragma once

#include "base/error.h"
#include "cli/subcommand.h"
#include "cloud/journal.h"
#include "jobs/rented/owner_rules.h"
#include "jobs/rented/owner_talk.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

// Returns the record of the job by the name of its cluster, or by its id on the machines. nullopt:
// no other host owns such a job. Opens no journal for users who never rented.
Result<std::optional<cloud::RentedJob>> find_owned(const std::string& word);
Result<std::vector<cloud::RentedJob>> owned_jobs();
// Refuses a job that another host owns: the machines of the job accept only the owner's keys. what:
// the aim of the command, "its page". command: the first word, "page".
Status refuse_owned(const std::string& word, std::string_view what, std::string_view command);
// Refuses a name that a job on another host has.
Status check_not_owned_elsewhere(cloud::Journal& journal, const std::string& cluster);

// Asks the host, and returns what the command printed there. argv: behind `host-rental`. Errors:
// unavailable (the host was not reached), canceled (by a signal of the user), and those of
// jobs::rented::error_of_ask(). asked: set to how far the request came.
Result<std::string> ask_owner(const std::string& host, const Args& argv,
                              const std::string& input = {}, jobs::rented::Asked* asked = nullptr);
Result<jobs::rented::OwnedState> state_of_owned(const cloud::RentedJob& job);

// Runs a user's command about the job on the host, and passes its output and exit code on.
enum class Output {
  words,  // of lockstep there: in printable form, and bounded
  job,    // of the job: unchanged, like all output of jobs
};
Result<ExitCode> run_at_owner_of(const cloud::RentedJob& job, const Args& command, Output output);
// The same for a command of this machine whose first name is such a job. path: the words before
// `call.words`. nullopt: the command is about something else.
Result<std::optional<ExitCode>> pass_to_owner(const Call& call, const Args& path,
                                              Output output = Output::words);

enum class Telling {
  full,   // the user has not seen the job's log
  brief,  // the user has
};
// If the job has ended: brings its files, tells its end, and forgets it. Returns its exit code, or
// nullopt if the job goes on, or another command here sees to it. An error leaves the record for
// the next command.
Result<std::optional<int>> settle_owned(cloud::Journal& journal, std::string_view program,
                                        const cloud::RentedJob& job, Telling telling);
// Brings the files of the job that are on the host now. Returns whether all came: trouble with one
// path costs none of the others. unavailable: the host was not reached.
Result<bool> bring_from_owner(std::string_view program, const cloud::RentedJob& job);

struct OwnedView {
  std::string how = "all";  // of `host-rental follow`
  bool cancels = false;     // cancels the job first
  bool leaves = false;      // Ctrl-C ends the view, and not the job
  bool met = false;         // this command has just reached the host
};
// Shows the job as `host-rental follow RENTAL HOW` does, and settles it at its end. settles: this
// process has the claim to the job; without the claim, waits until another command has settled it.
// Returns the job's exit code, or 128 + N after signal N.
Result<ExitCode> view_owned(cloud::Journal& journal, std::string_view program,
                            const cloud::RentedJob& job, const OwnedView& view, bool settles);
// Opens the journal and claims the job first.
Result<ExitCode> view_owned(std::string_view program, const cloud::RentedJob& job,
                            const OwnedView& view);

// Returns "MESSAGE; HINT".
std::string error_line(const Error& error);

}  // namespace lockstep::cli
