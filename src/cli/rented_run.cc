#include "cli/rented_run.h"

#include "base/id.h"
#include "base/text.h"
#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "cli/owned_job.h"
#include "cli/remote_run.h"
#include "cli/rented_course.h"
#include "cli/rented_view.h"
#include "cli/run_options.h"
#include "cli/sweep_options.h"
#include "cli/terminal.h"
#include "launch/backend_row.h"
#include "rent/guard.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr int kMostCounted = 1'000'000;  // nodes

using cloud::RentedJob;

// A job that was begun, before its machines are rented.
struct Begun {
  RentedJob job;
  io::Fd claim;
  bool kept = false;  // in the journal
  std::optional<rent::CourseProcess> course;
};

// Returns the words of the job for its course. The course has no terminal, so `--fold auto` is
// decided here.
Args words_of_job(const Parsed& parsed) {
  Args words = all_words(run_table(), parsed, {"fold"});
  const bool fold = folds(parsed.text("fold").value_or("auto"));
  words.insert(words.begin(), {"--fold", fold ? "always" : "never"});
  return words;
}

// Claims and records the job, and starts the process of its course, which waits for this command.
// If this command is killed while it rents, that process goes on.
Status begin_job(rent::OnDemand& world, const Call& call, const std::string& client,
                 const cloud::Rental& rental, Begun& begun) {
  RentedJob& job = begun.job;
  auto mine = rent::claim_job(rental.id);
  if (!mine && mine.error().code == Errc::already_exists)
    return fail(Errc::unavailable,
                fmt::format("another lockstep has a job on '{}' already", rental.cluster),
                "wait for it, give another --name, or end it: lockstep down " + rental.cluster);
  if (!mine) return Failure(std::move(mine).error());
  begun.claim = std::move(*mine);
  OnDemandOptions options;
  fill(run_table(), call.parsed, options);
  std::error_code error;
  job = {.rental = rental.id,
         .cluster = rental.cluster,
         .words = words_of_job(call.parsed),
         .folder = std::filesystem::current_path(error),
         .began_ms = world.web().now_ms(),
         .back = remote_options(run_table(), call.parsed).back,
         .client = client};
  job.run_id = random_uuid4();  // one id for all attempts, on whatever machines
  LOCKSTEP_TRY(world.journal().keep_job(job));
  begun.kept = true;
  LOCKSTEP_TRY_ASSIGN(begun.course, rent::start_course(rental.id, begun.claim));
  return {};
}

// Returns how many nodes the job waits for, from --nnodes. The static backend always waits for the
// maximum.
int least_nodes(const Parsed& parsed, int machines) {
  const auto nnodes = parsed.text("nnodes");
  if (!nnodes) return machines;
  const auto ends = split(*nnodes, ':');
  const launch::BackendRow* backend = launch::find_backend(
      parsed.text("rdzv-backend").value_or(std::string(launch::static_backend().name)));
  const bool elastic = backend == nullptr || !backend->fixed();
  const auto least = parse_int(elastic ? ends.front() : ends.back());
  return least ? static_cast<int>(std::clamp<std::int64_t>(*least, 1, kMostCounted)) : machines;
}

// Refuse --nnodes larger than --nodes: the job would wait, billed, for machines that never come.
Status check_nodes(const Parsed& parsed, const std::optional<std::string>& nodes) {
  const auto machines = static_cast<int>(parse_int(nodes.value_or("1")).value_or(0));
  const int least = least_nodes(parsed, machines);
  if (machines < 1 || least <= machines) return {};
  return fail(Errc::invalid_input,
              fmt::format("--nnodes {}: the job waits for {} nodes, and {} rented",
                          printable(*parsed.text("nnodes"), 40), least,
                          machines == 1 ? "one is" : fmt::format("{} are", machines)),
              fmt::format("--nodes {} rents as many, and all of them take part", least));
}

Result<ExitCode> rent_and_run(Call call, const RemoteOptions& remote,
                              const OnDemandOptions& options) {
  if (remote.elsewhere())
    return fail(
        Errc::invalid_input,
        fmt::format("both {} and --on-demand say where it runs", remote.on ? "--on" : "--hostfile"),
        "give one of them");
  LOCKSTEP_TRY(check_nodes(call.parsed, remote.place.nodes));
  // The course of the job may run on another machine, and begin again days later.
  LOCKSTEP_TRY(keep_rows(call.parsed));
  if (!options.print) LOCKSTEP_TRY(check_job(call, remote));
  RentRequest request{.program = kRentedRun,
                      .cluster = remote.name ? *remote.name : "run-" + to_lower(random_suffix(6)),
                      .options = options,
                      .nodes = remote.place.nodes,
                      .json = remote.json};
  LOCKSTEP_TRY_ASSIGN(const auto world, rent::OnDemand::open());
  keep_guarded(*world, kRentedRun);
  const auto& guard = options.guard;
  // Machines that are rented from here already stay with this machine.
  if (guard && !guard->empty() && *guard != "here" && !world->journal().of_cluster(request.cluster))
    return run_at_owner(call, remote, options, *world, request.cluster);
  Begun begun;
  RentedJob& job = begun.job;
  std::optional<RentedView> view;
  request.before = [&](const cloud::Rental& rental) -> Status {
    LOCKSTEP_TRY(begin_job(*world, call, {}, rental, begun));
    view.emplace(
        *world,
        ViewRequest{
            .program = kRentedRun, .rental = rental, .detach = remote.detach, .json = remote.json},
        std::move(*begun.course), std::move(begun.claim));
    return {};
  };
  auto rented = rent_machines(*world, request);
  // Without its record the course ends by itself.
  if (!rented && begun.kept) (void)world->journal().drop_job(job.rental);
  if (!rented) return Failure(std::move(rented).error());
  if (!rented->rental) return ExitCode::ok;
  world->locks().release(request.cluster);
  // If this note is lost, the next process starts over from renting and finds these machines.
  job.stage = RentedJob::Stage::working;
  (void)world->journal().note_job(job);
  auto code = view->run();
  if (code) return passed_on(*code);
  code.error().message +=
      fmt::format("; the job goes on all the same: {}", rent::follow_log(request.cluster));
  return Failure(std::move(code).error());
}

// The variables go to the course alone: the guard, which may live for days, does not get them.
Status begin_with_variables(rent::OnDemand& world, const Call& call,
                            const jobs::rented::OwnerRequest& request, const cloud::Rental& rental,
                            Begun& begun) {
  using jobs::rented::kRequestVariable;
  // A view that begins before the course would show the log of an earlier job of that name.
  std::error_code error;
  for (const std::string& log : rent::follow_logs(rental.cluster))
    std::filesystem::remove(log, error);
  if (setenv(kRequestVariable, jobs::rented::kept_request_text(request).c_str(), 1) != 0)
    return fail_sys("set the job's variables", errno);
  Status begun_well = begin_job(world, call, request.client, rental, begun);
  unsetenv(kRequestVariable);
  return begun_well;
}

}  // namespace

Result<ExitCode> begin_for_client(const Call& call, const jobs::rented::OwnerRequest& request) {
  const RemoteOptions remote = remote_options(run_table(), call.parsed);
  RentRequest rent{.program = kRentedRun,
                   .cluster = request.cluster,
                   .options = {},
                   .nodes = remote.place.nodes,
                   .json = remote.json,
                   .hand_over = request.rental};
  fill(run_table(), call.parsed, rent.options);
  LOCKSTEP_TRY_ASSIGN(const auto world, rent::OnDemand::open());
  LOCKSTEP_TRY_ASSIGN(const bool again, world->journal().has_job(request.rental));
  if (again) return ExitCode::ok;
  Begun begun;
  rent.before = [&](const cloud::Rental& rental) {
    return begin_with_variables(*world, call, request, rental, begun);
  };
  const auto rented = rent_machines(*world, rent);
  if (!rented && begun.kept) (void)world->journal().drop_job(begun.job.rental);
  if (!rented) return Failure(rented.error());
  if (begun.course) (void)!write(begun.course->go.get(), "g", 1);
  return ExitCode::ok;
}

ExitCode run_on_rented(const Call& call, const RemoteOptions& remote,
                       const OnDemandOptions& options) {
  const auto code = rent_and_run(call, remote, options);
  return code ? *code : refuse(kRentedRun, code.error());
}

std::string needs_on_demand(const Parsed& parsed) {
  for (const Option& option : on_demand_rows())
    if (parsed.has(option.name)) return "--" + std::string(option.name);
  return {};
}

}  // namespace lockstep::cli
