#include "cli/rented_run.h"

#include "base/id.h"
#include "base/text.h"
#include "cli/ground.h"
#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "cli/rented_course.h"
#include "cli/rented_view.h"
#include "cli/run_options.h"
#include "cli/terminal.h"
#include "cli/watched_job.h"
#include "launch/backend_row.h"
#include "rent/guard.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr int kMostCounted = 1'000'000;  // nodes

using cloud::RentedJob;

// Records where the outputs of --back lie: the watching host does not have the job's options.
Status note_outputs(const RemoteOptions& remote, const std::vector<std::string>& back,
                    RentedJob& job) {
  if (back.empty()) return {};
  LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(remote, false));
  if (!ground.project) return {};
  job.root = ground.project->root;
  job.tree = ground.project->name;
  for (const std::string& path : back) {
    LOCKSTEP_TRY_ASSIGN(std::string below, project::path_in_project(*ground.project, path));
    job.back.push_back(std::move(below));
  }
  return {};
}

// A job that was begun, before its machines are rented.
struct Begun {
  RentedJob job;
  io::Fd claim;
  bool told_watcher = false;
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
Status begin_job(rent::OnDemand& world, const Call& call, const RemoteOptions& remote,
                 const std::vector<std::string>& back, const cloud::Rental& rental, Begun& begun) {
  RentedJob& job = begun.job;
  auto mine = rent::claim_job(rental.id);
  if (!mine && mine.error().code == Errc::already_exists)
    return fail(Errc::unavailable,
                fmt::format("another lockstep has a job on '{}' already", rental.cluster),
                "wait for it, give another --name, or end it: lockstep down " + rental.cluster);
  if (!mine) return Failure(std::move(mine).error());
  begun.claim = std::move(*mine);
  std::error_code error;
  job = {.rental = rental.id,
         .cluster = rental.cluster,
         .words = words_of_job(call.parsed),
         .folder = std::filesystem::current_path(error),
         .began_ms = world.web().now_ms()};
  job.run_id = random_uuid4();  // one id for all attempts, on whatever machines
  if (rental.terms.watched) {
    job.watcher = rental.terms.guard;
    LOCKSTEP_TRY_ASSIGN(const bool known, world.journal().has_job(rental.id));
    if (known)
      return fail(Errc::unavailable,
                  fmt::format("{} watches a job on '{}' already", job.watcher, rental.cluster),
                  "wait for it, give another --name, or end it: lockstep down " + rental.cluster);
    LOCKSTEP_TRY(note_outputs(remote, back, job));
    begun.told_watcher = true;
    LOCKSTEP_TRY(name_to_watcher(world, job));
  }
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

Result<ExitCode> rent_and_run(const Call& call, const RemoteOptions& remote,
                              const OnDemandOptions& options) {
  if (remote.elsewhere())
    return fail(
        Errc::invalid_input,
        fmt::format("both {} and --on-demand say where it runs", remote.on ? "--on" : "--hostfile"),
        "give one of them");
  LOCKSTEP_TRY(check_nodes(call.parsed, remote.place.nodes));
  if (!options.print) LOCKSTEP_TRY(check_job(call, remote, options.back));
  RentRequest request{.program = kRentedRun,
                      .cluster = remote.name ? *remote.name : "run-" + to_lower(random_suffix(6)),
                      .options = options,
                      .nodes = remote.place.nodes,
                      .json = remote.json};
  LOCKSTEP_TRY_ASSIGN(const auto world, rent::OnDemand::open());
  keep_guarded(*world, kRentedRun);
  Begun begun;
  RentedJob& job = begun.job;
  std::optional<RentedView> view;
  request.before = [&](const cloud::Rental& rental) -> Status {
    LOCKSTEP_TRY(begin_job(*world, call, remote, options.back, rental, begun));
    view.emplace(
        *world,
        ViewRequest{
            .program = kRentedRun, .rental = rental, .detach = remote.detach, .json = remote.json},
        std::move(*begun.course), std::move(begun.claim));
    return {};
  };
  auto rented = rent_machines(*world, request);
  // Without its record the course ends by itself.
  if (!rented && begun.told_watcher) (void)tell_watcher(*world, job, rent::WatchVerb::drop);
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

}  // namespace

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
