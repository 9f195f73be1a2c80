// lockstep host-rental: for a client elsewhere, on the host that owns the rental of its job
// (`run --on-demand --guard HOST`): begins the job, tells how it is, runs commands about it. People
// do not call this.
#include "base/text.h"
#include "cli/guarded.h"
#include "cli/host_view.h"
#include "cli/rented_run.h"
#include "cli/run_options.h"
#include "cli/subcommand.h"
#include "io/own_folders.h"
#include "jobs/job_book.h"
#include "jobs/places/find_job.h"
#include "jobs/rented/client_state.h"
#include "jobs/rented/owned_job.h"
#include "jobs/rented/owner_rules.h"
#include "jobs/rented/owner_talk.h"
#include "rent/guard_desk.h"
#include "rent/guard_talk.h"

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

namespace lockstep::cli {
namespace {

using jobs::rented::OwnedState;
using jobs::rented::OwnerRequest;

// The folder is the project's, which the client has synced before.
Status enter(const std::string& folder) {
  std::error_code error;
  std::filesystem::current_path(io::home_folder() + "/", error);
  if (!error && !folder.empty()) std::filesystem::current_path(folder, error);
  return error ? Status(fail(Errc::not_found, fmt::format("{}: {}", folder, error.message())))
               : Status();
}

Result<ExitCode> take_request(const Call& call, bool begins) {
  LOCKSTEP_TRY_ASSIGN(const std::string text, rent::read_request());
  LOCKSTEP_TRY_ASSIGN(const OwnerRequest request, jobs::rented::read_owner_request(text));
  if (begins) LOCKSTEP_TRY(enter(request.folder));
  auto parsed = parse_options(run_table(), request.words,
                              [](std::string_view) { return std::optional<std::string>(); });
  if (!parsed) return Failure(std::move(parsed).error().error);
  return begin_for_client({call.program, request.words, std::move(*parsed)}, request);
}

Result<ExitCode> print_state(const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(const auto world, rent::OnDemand::open());
  // After a reboot of this host no guard runs, and only a guard starts the course again.
  keep_guarded_here(*world, "lockstep");
  LOCKSTEP_TRY_ASSIGN(const OwnedState state,
                      jobs::rented::state_for_client(world->journal(), rental));
  std::puts(jobs::rented::owned_state_text(state).c_str());
  return ExitCode::ok;
}

// words: "follow", the rental, how, how much was shown, and perhaps "canceled" or "to-end".
Result<ExitCode> follow(const Args& words) {
  const auto shown = parse_int(words[3]);
  if (!shown || *shown < 0) return fail(Errc::invalid_input, "the bytes that were shown: a number");
  LOCKSTEP_TRY_ASSIGN(auto world, rent::OnDemand::open());
  keep_guarded_here(*world, "lockstep");  // as in print_state()
  LOCKSTEP_TRY_ASSIGN(const auto job, jobs::rented::job_of_client(world->journal(), words[1]));
  if (!job) return fail(Errc::not_found, "the job is not known there any more");
  world.reset();  // the view lives as long as the job
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(io::state_folder()));
  return show_to_client(std::move(journal), *job,
                        {.how = words[2],
                         .shown = static_cast<std::uint64_t>(*shown),
                         .canceled = words.back() == jobs::rented::kFollowCanceled,
                         .to_end = words.back() == jobs::rented::kFollowToEnd});
}

// Runs a user's command about the rental. Another rental may have the name by now.
Result<ExitCode> run_about(const Call& call) {
  const std::string& rental = call.words[1];
  const std::string& cluster = call.words[2];
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(io::state_folder()));
  const auto known = journal.of_cluster(cluster);
  if (!known && known.error().code != Errc::not_found) return Failure(known.error());
  LOCKSTEP_TRY_ASSIGN(const auto owned, jobs::rented::find_owned(cluster, journal.jobs()));
  LOCKSTEP_TRY(jobs::rented::check_name_is_of(
      rental, cluster, known ? std::optional(known->id) : std::nullopt, owned.has_value()));
  return dispatch(call.program, "lockstep", {call.words.begin() + 3, call.words.end()});
}

// Answers the client's question about the job of the rental. words: "look", the rental, and the
// question.
Result<ExitCode> look(const Args& words) {
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(const auto course, jobs::rented::job_of_client(journal, words[1]));
  if (!course) return fail(Errc::not_found, "the job is not known there any more");
  LOCKSTEP_TRY_ASSIGN(const auto book, jobs::JobBook::open_to_look(io::state_folder()));
  // By its id: an earlier job may have had the same name.
  auto known = book.find(jobs::rented::job_id_of(*course));
  if (!known && known.error().code != Errc::not_found) return Failure(known.error());
  const auto job = known ? jobs::places::open_job(std::move(*known)) : nullptr;
  LOCKSTEP_TRY_ASSIGN(const std::string answer,
                      jobs::rented::answer_look(job.get(), {words.begin() + 2, words.end()}));
  std::puts(answer.c_str());
  return ExitCode::ok;
}

Result<ExitCode> host_rental(const Call& call) {
  const Args& words = call.words;
  const std::string first = words.empty() ? std::string() : words.front();
  if (words.size() == 1 && (first == "plan" || first == "begin"))
    return take_request(call, first == "begin");
  if (words.size() < 2 || !rent::is_rental_id(words[1]))
    return fail(Errc::invalid_input, "it takes a verb and the id of a rental");
  if (words.size() == 2 && first == "state") return print_state(words[1]);
  if ((words.size() == 4 || words.size() == 5) && first == "follow") return follow(words);
  if (words.size() > 3 && first == "ask") return run_about(call);
  if (words.size() > 2 && first == jobs::rented::kOwnerLook) return look(words);
  if (words.size() != 2 || first != "told") return fail(Errc::invalid_input, "unknown verb");
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(io::state_folder()));
  // The client has told the end to the user, so the record has served.
  LOCKSTEP_TRY(journal.drop_job(words[1]));
  return ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kHostRental{.name = jobs::rented::kHostRental,
                                              .summary = "the rental of a client's job here",
                                              .run = host_rental,
                                              .signals = Signals::blocked,
                                              .listed = false};

}  // namespace lockstep::cli
