// The client's side of a job whose rental another host owns (`run --on-demand --guard HOST`): shows
// the job, and settles it once it has ended. This machine keeps a small record of the job: the
// host, and the files to bring. All else is asked there.
#pragma once

#include "base/error.h"
#include "cloud/journal.h"
#include "jobs/rented/owned_view.h"
#include "jobs/rented/owner_ask.h"
#include "jobs/rented/owner_rules.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::rented {

// The host of a job, and the user. A test gives stand-ins.
struct OwnedWorld {
  using Job = cloud::RentedJob;
  using Words = std::vector<std::string>;
  using Say = std::function<void(const std::string& text)>;

  // See ask_owner().
  std::function<Result<std::string>(const Job& job, const Words& argv)> ask = ask_there;
  // See run_at_owner().
  std::function<Result<int>(const Job& job, const Words& command, OwnerOutput output)> run =
      run_there;
  // See view_at_owner(). Fills OwnedViewRequest::place.
  std::function<Result<OwnedViewEnd>(const Job& job, OwnedViewRequest request)> view = view_there;
  // Brings the files of one path. false: the host cannot read the path, and `say` was told why.
  // unavailable: the host was not reached.
  std::function<Result<bool>(const Job& job, const std::string& path, const Say& say)> bring =
      bring_from_there;
  std::function<std::int64_t()> now_ms = now_here;
  // Tells the user a line.
  Say say = say_here;

  Result<OwnedState> state(const Job& job) const;

  static Result<std::string> ask_there(const Job& job, const Words& argv);
  static Result<int> run_there(const Job& job, const Words& command, OwnerOutput output);
  static Result<OwnedViewEnd> view_there(const Job& job, OwnedViewRequest request);
  static Result<bool> bring_from_there(const Job& job, const std::string& path, const Say& say);
  static std::int64_t now_here();
  static void say_here(const std::string& text);
};

// Brings the job's files that are on the host now, and goes on after trouble with one path. Returns
// whether all files came. unavailable: the host was not reached.
Result<bool> bring_outputs(const OwnedWorld& world, const cloud::RentedJob& job);

enum class Telling {
  full,   // the user has not seen the job's log
  brief,  // the user has
};
// Settles a job that has ended: brings its files, tells the end, and forgets the job. Returns the
// exit code; nullopt: the job goes on, or another command here settles it. An error leaves the
// record for the next command.
Result<std::optional<int>> settle_owned(cloud::Journal& journal, const OwnedWorld& world,
                                        const cloud::RentedJob& job, Telling telling);

// Ends the rental and its job on the host, and brings the outputs that the host has saved. Tells
// the end of a job that had ended before. forgets: forget the job here even if the host is not
// reached. The error then says that this machine cannot terminate the machines of that host.
Status end_owned(cloud::Journal& journal, const OwnedWorld& world, const cloud::RentedJob& job,
                 bool forgets);

struct OwnedShow {
  std::string how = "all";  // of `host-rental follow`
  bool cancels = false;     // cancels the job first
  bool leaves = false;      // Ctrl-C ends the view, and not the job
  bool met = false;         // this command has just reached the host
};
struct OwnedShown {
  // The exit code of a settled job. A job without its outputs here has failed. nullopt: the job
  // goes on.
  std::optional<int> code = {};
  int view_code = 0;  // exit code of the view on the host, if the job goes on
  int signal = 0;     // the user's signal that has ended the view; 0: none
};
// Shows the job as `host-rental follow RENTAL HOW` does, and settles it at its end. settles: this
// process has the claim to the job; without the claim, waits until another command has settled it.
// unavailable: the host was not reached.
Result<OwnedShown> show_owned(cloud::Journal& journal, const OwnedWorld& world,
                              const cloud::RentedJob& job, const OwnedShow& show, bool settles);
// Opens the journal and claims the job first.
Result<OwnedShown> show_owned(const OwnedWorld& world, const cloud::RentedJob& job,
                              const OwnedShow& show);

}  // namespace lockstep::jobs::rented
