// lockstep down: terminates rented machines, by name or all of them.
#include "base/text.h"
#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "cli/on_demand_words.h"
#include "cli/owner_host.h"
#include "cli/rent_tables.h"
#include "cli/subcommand.h"
#include "cli/swept.h"
#include "codec/json.h"
#include "io/own_folders.h"
#include "jobs/job_book.h"
#include "jobs/places/find_job.h"
#include "jobs/places/running_jobs.h"
#include "jobs/rented/owned_job.h"
#include "jobs/rented/owner_ask.h"
#include "rent/end_rental.h"
#include "rent/gang.h"
#include "rent/sweep.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace lockstep::cli {
namespace {

using cloud::Rental;

// Returns the ids of jobs that may still run on live machines.
Result<std::vector<std::string>> jobs_there(rent::OnDemand& world, Rental rental) {
  const auto book = jobs::JobBook::open(io::state_folder());
  if (!book) return std::vector<std::string>();
  // If the provider does not answer, the machines may be alive.
  const auto alive = [&] { return !rent::look_only(world, rental) || !rental.live().empty(); };
  const auto open = [](jobs::KnownJob job) { return jobs::places::open_job(std::move(job)); };
  return jobs::places::jobs_on_machines(*book, rental.cluster, alive, open);
}

Status agree_to_end(rent::OnDemand& world, const Rental& rental, const DownOptions& options) {
  if (options.force || options.yes) return {};
  LOCKSTEP_TRY_ASSIGN(const auto jobs, jobs_there(world, rental));
  if (jobs.empty()) return {};
  const std::string what =
      fmt::format("job {} may still run on '{}'", join(jobs, ", "), rental.cluster);
  if (!at_terminal()) return fail(Errc::invalid_input, what, "give --force, or cancel it first");
  return ask_consent(world, what + "; end it?", "nothing was ended");
}

// Terminates the rental, or reports that another process has done so.
Status give_back_locked(rent::OnDemand& world, Rental& rental) {
  const auto tell = [](const std::string& text) { tell_line(down_table().program, text); };
  const auto waits = [&] {
    tell(fmt::format("another lockstep has '{}' in hands: that ends first", rental.cluster));
  };
  const auto end = [&](Rental& one) {
    return give_machines_back(world, down_table().program, one);
  };
  LOCKSTEP_TRY_ASSIGN(const bool ended, rent::end_rental(world, rental, waits, end));
  if (ended) return {};
  if (rental.closed_ms == 0)
    tell(fmt::format("'{}' is gone already", rental.cluster));
  else
    tell(fmt::format("'{}' is terminated; it cost {} USD", rental.cluster,
                     cloud::dollars_text(cloud::cost_so_far(rental, world.now_ms()))));
  return {};
}

// Asks the user whether to end a job that another host owns. An ended job needs no question.
Status agree_to_end_there(rent::OnDemand& world, const cloud::RentedJob& job,
                          const DownOptions& options) {
  if (options.force || options.yes) return {};
  LOCKSTEP_TRY_ASSIGN(const auto there, jobs::rented::state_of_owned(job));
  if (!there.known || there.ended) return {};
  const std::string what = fmt::format("the job of '{}' at {} goes on", job.cluster, job.host);
  if (!at_terminal()) return fail(Errc::invalid_input, what, "give --force, or cancel it first");
  return ask_consent(world, what + "; end it?", "nothing was ended");
}

// Ends a rental that another host owns.
Status end_owned(rent::OnDemand& world, const cloud::RentedJob& job, const DownOptions& options) {
  LOCKSTEP_TRY(agree_to_end_there(world, job, options));
  return jobs::rented::end_owned(world.journal(), owned_world(down_table().program), job,
                                 options.force);
}

void clean_up(rent::OnDemand& world) {
  for (const rent::CleanedAccount& one : rent::clean_accounts(world))
    tell_line(down_table().program,
              fmt::format("{}: the keys, networks and firewall rules made there {}", one.provider,
                          one.cleaned ? "are removed"
                                      : "stay, and cost nothing: " + one.cleaned.error().message));
}

// Terminates one rental by name. After an error, machines may still exist, or there never was such
// a rental.
Status end_named(rent::OnDemand& world, const std::string& name, const DownOptions& options,
                 nlohmann::ordered_json& rows) {
  LOCKSTEP_TRY_ASSIGN(const auto owned, jobs::rented::find_owned(name, world.journal().jobs()));
  if (owned) return end_owned(world, *owned, options);
  auto rental = world.journal().of_cluster(name);
  if (!rental && rental.error().code == Errc::not_found) {
    // A rental that ended before is not an error. An unknown name is one.
    LOCKSTEP_TRY_ASSIGN(const auto all, world.journal().since(0));
    if (std::none_of(all.begin(), all.end(),
                     [&](const Rental& one) { return one.cluster == name; }))
      return Failure(rental.error());
    tell_line(down_table().program, fmt::format("'{}' is gone already", name));
    return {};
  }
  if (!rental) return Failure(rental.error());
  LOCKSTEP_TRY(agree_to_end(world, *rental, options));
  Status done = give_back_locked(world, *rental);
  // The next name may take long, and other commands may want this cluster meanwhile.
  world.locks().release(name);
  rows.push_back(rental_row(world, *rental));
  return done;
}

// Terminates machines without a rental, at all providers. An error means that some may be left.
Status end_orphans(rent::OnDemand& world, const DownOptions& options, cloud::Reconciled& swept) {
  LOCKSTEP_TRY_ASSIGN(swept,
                      rent::sweep_now(world, waits_for(down_table().program, kForLeftovers)));
  tell_sweep(down_table().program, swept, world.web().now_ms());
  if (!options.json && swept.ended.empty() && swept.ending.empty() && swept.unheard.empty())
    std::puts(world.providers().with_keys({}) ? "no provider has leftover machines"
                                              : "no provider was asked: no keys are found");
  return {};
}

bool is_done(const cloud::Reconciled& swept) {
  return swept.unheard.empty() && swept.not_ended.empty() &&
         std::all_of(swept.ended.begin(), swept.ended.end(),
                     [](const auto& one) { return one.error.message.empty(); });
}

Result<ExitCode> take_down(const Call& call, Swept& swept) {
  DownOptions options;
  fill(down_table(), call.parsed, options);
  std::vector<std::string> names = call.parsed.names;
  if (names.empty() && !options.all && !options.orphans)
    return fail(Errc::invalid_input, "nothing is named", "write lockstep down NAME, or --all");
  LOCKSTEP_TRY_ASSIGN(rent::OnDemand* const world, swept.open());
  if (options.all) {
    LOCKSTEP_TRY_ASSIGN(const auto open, world->journal().open_rentals());
    for (const Rental& rental : open)
      names.push_back(rental.cluster);
    LOCKSTEP_TRY_ASSIGN(const auto owned, jobs::rented::owned_among(world->journal()));
    for (const cloud::RentedJob& job : owned)
      names.push_back(job.cluster);
  }
  ExitCode code = ExitCode::ok;
  const auto failed = [&](const Error& error) {
    // The exit code must name the signal, not the error that the signal has caused.
    const int signal = world->signals().take();
    code = refuse(down_table().program, error);
    if (signal != 0) code = stopped_by(signal);
  };
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::string& name : names) {
    if (const Status done = end_named(*world, name, options, rows); !done) failed(done.error());
    // After Ctrl-C the other rentals stay as they are.
    if (is_stopped(code)) break;
  }
  cloud::Reconciled found;
  if (!is_stopped(code) && !options.all && !options.orphans) {
    swept.begin();
    if (options.json) swept.tell();
    found = swept.found();
  } else if (!is_stopped(code)) {
    keep_guarded(*world, down_table().program);
    if (const Status ended = end_orphans(*world, options, found); !ended) failed(ended.error());
    if (code == ExitCode::ok && !is_done(found)) code = ExitCode::failed;
    if (options.all && code == ExitCode::ok) clean_up(*world);
  }
  if (options.json)
    std::puts(codec::print_json(nlohmann::ordered_json{{"rentals", std::move(rows)},
                                                       {"swept", swept_json(found)}})
                  .c_str());
  return code;
}

Result<ExitCode> down_command(const Call& call) {
  return run_swept(call, down_table(), take_down);
}

}  // namespace

extern constinit const Subcommand kDown{.name = "down",
                                        .summary = "terminate rented machines",
                                        .table = down_table,
                                        .run = down_command,
                                        .signals = Signals::blocked};

}  // namespace lockstep::cli
