#include "cli/rented_run.h"

#include "base/id.h"
#include "base/text.h"
#include "cli/date_text.h"
#include "cli/ground.h"
#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "cli/on_demand_words.h"
#include "cli/places.h"
#include "cli/remote_run.h"
#include "cluster/rented_host.h"
#include "cluster/sync_tree.h"
#include "proc/signal_watch.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::string_view kRentedRun = "lockstep run --on-demand";
constexpr int kLockTries = 60;
constexpr int kLossesToOnDemand = 3;  // of spot, until --spot=prefer has had enough

// One job on rented machines, over all of its attempts.
class RentedRun {
 public:
  RentedRun(const Call& call, const RemoteOptions& remote, const OnDemandOptions& options,
            cluster::OnDemand& world, cloud::Rental rental)
      : call_(call), remote_(remote), options_(options), world_(world), rental_(std::move(rental)) {
    remote_.on = rental_.cluster;
    remote_.place.nodes.reset();
    // The same for all attempts, whatever machines they run on.
    if (rental_.wish.spot != cloud::SpotWish::no) remote_.run_id = random_uuid4();
    remote_.hosts_gone = [this] { return machines_gone(); };
  }

  Result<int> run();

 private:
  bool machines_gone() const;
  bool was_taken();
  Status take_lock();
  Status bring_back();
  Status take_along();
  bool first_runs();
  void save(const RemoteOutcome& ended);
  Status rent_again();
  Result<bool> replace_machines();
  Result<int> finish(const RemoteOutcome& ended);
  Status hold(const std::string& why);
  RemoteOutcome attempt();
  void tell(const std::string& text) const { tell_line(kRentedRun, text); }

  const Call& call_;
  RemoteOptions remote_;
  const OnDemandOptions& options_;
  cluster::OnDemand& world_;
  cloud::Rental rental_;
  int losses_ = 0;
  bool brought_ = false;  // what --back names is here, from machines that were taken
};

// Also on a thread of its own, so with a world of its own.
bool RentedRun::machines_gone() const {
  const auto other = cluster::OnDemand::open();
  if (!other) return false;
  cloud::Rental copy = rental_;
  return (*other)->look_only(copy) && !cloud::Renting::whole(copy);
}

// While the job runs nobody has the cluster's lock, so that `keep` and `down` work from elsewhere:
// what they have changed is read again.
Status RentedRun::take_lock() {
  Status locked = world_.lock(rental_.cluster);
  for (int tries = 0; !locked && tries < kLockTries; ++tries) {
    LOCKSTEP_TRY(world_.web().pause(std::chrono::seconds(1)));
    locked = world_.lock(rental_.cluster);
  }
  LOCKSTEP_TRY(locked);
  auto known = world_.journal().of_cluster(rental_.cluster);
  if (known && known->id == rental_.id) {
    rental_ = std::move(*known);
  } else if (!known && known.error().code == Errc::not_found) {
    rental_.closed_ms = world_.web().now_ms();
  }
  return {};
}

// Whether the machines were taken away, or are about to be.
bool RentedRun::was_taken() {
  if (!rental_.attempts.back().offer.spot) return false;
  if (rental_.ends_ms > 0 && world_.web().now_ms() >= rental_.ends_ms) return false;
  if (machines_gone()) return true;
  const auto places = places_of(rental_.cluster, {});
  if (!places) return false;
  const auto leases = cluster::ask_leases(*places);
  if (!leases) return false;
  bool silent = false;
  for (const cluster::LeaseAnswer& answer : *leases) {
    if (!answer.state.notice.empty()) return true;
    silent = silent || !answer.error.empty();
  }
  // Until that was clear its provider may have noticed, too.
  return silent && machines_gone();
}

Status RentedRun::bring_back() {
  if (options_.back.empty()) return {};
  LOCKSTEP_TRY_ASSIGN(const auto places, places_of(rental_.cluster, {}));
  LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(remote_, false));
  if (!ground.project)
    return fail(Errc::invalid_input, "--back brings back what lies in the synced project",
                "leave --sync none out");
  if (places.empty()) return fail(Errc::unavailable, "its machines are gone");
  for (const std::string& path : options_.back) {
    LOCKSTEP_TRY_ASSIGN(const std::string below, cluster::path_in_project(*ground.project, path));
    LOCKSTEP_TRY_ASSIGN(const auto host,
                        cluster::sync_back(places.front(), *ground.project, below, {}));
    if (host.code != 0) return fail(Errc::unavailable, host.error, host.hint);
    tell(fmt::format("{}: {} files, {} brought back", path, host.files,
                     cluster::size_text(host.bytes)));
  }
  return {};
}

// To the next machines: what git ignores is not in the project's files.
Status RentedRun::take_along() {
  if (!brought_) return {};
  LOCKSTEP_TRY_ASSIGN(const auto places, places_of(rental_.cluster, {}));
  LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(remote_, false));
  for (const std::string& path : options_.back) {
    LOCKSTEP_TRY_ASSIGN(const std::string below, cluster::path_in_project(*ground.project, path));
    const std::string source = ground.project->root + "/" + below;
    std::error_code error;
    if (!std::filesystem::is_directory(source, error)) continue;
    LOCKSTEP_TRY_ASSIGN(const cluster::Project outputs, cluster::find_project(".", source));
    cluster::SyncOptions settings;
    settings.destination = ground.project->name + "/" + below;
    settings.force = true;
    LOCKSTEP_TRY_ASSIGN(const auto report, cluster::sync_project(places, outputs, settings));
    for (const auto& host : report.hosts)
      if (host.code != 0) return fail(Errc::unavailable, host.error, host.hint);
  }
  return {};
}

Status RentedRun::rent_again() {
  ++losses_;
  tell(fmt::format("'{}' was taken away by its provider; its job goes on elsewhere (attempt {})",
                   rental_.cluster, losses_ + 1));
  const auto told = [&](const cloud::RentEvent& event) { tell(event_text(event)); };
  const cloud::Offer lost = rental_.attempts.back().offer;
  // The old machines are seen gone before new ones are asked for.
  LOCKSTEP_TRY(world_.drop_machines(rental_, "taken by the provider", told));
  LOCKSTEP_TRY(world_.journal().learn({.kind = cloud::Block::Kind::capacity,
                                       .provider = lost.provider,
                                       .region = lost.region,
                                       .zone = lost.zone,
                                       .type = lost.type,
                                       .spot = lost.spot,
                                       .until_ms = world_.web().now_ms() + cloud::kCapacityBlockMs,
                                       .why = "took a machine away"}));
  if (rental_.wish.spot == cloud::SpotWish::prefer && losses_ >= kLossesToOnDemand)
    rental_.wish.spot = cloud::SpotWish::no;
  LOCKSTEP_TRY(world_.new_keys(rental_));
  LOCKSTEP_TRY_ASSIGN(auto market, world_.ask(rental_.wish, true));
  return world_.rent(rental_, std::move(market), {}, told,
                     [&](const std::string& line) { tell(line); });
}

RemoteOutcome RentedRun::attempt() {
  if (losses_ == 0) return run_job_on_hosts(call_, remote_);
  if (const Status along = take_along(); !along) {
    print_error(kRentedRun, along.error());
    return {.code = 1, .job = {}};
  }
  Parsed parsed = call_.parsed;
  if (options_.resume_arg) parsed.script_args.push_back(*options_.resume_arg);
  remote_.attempt = losses_ + 1;
  return run_job_on_hosts({call_.program, call_.words, std::move(parsed)}, remote_);
}

// What is not here yet is worth more than the machine's next half hour.
Status RentedRun::hold(const std::string& why) {
  LOCKSTEP_TRY_ASSIGN(const auto places, places_of(rental_.cluster, {}));
  LOCKSTEP_TRY_ASSIGN(const auto held, cluster::hold_leases(places, rental_.terms.hold_s));
  for (const auto& answer : held)
    if (!answer.error.empty()) return fail(Errc::unavailable, answer.error);
  const cloud::Micros cost = cloud::cost_of(cloud::rate_now(rental_), rental_.terms.hold_s * 1000);
  tell(fmt::format("outputs are not here: {}; '{}' is held for {}, which costs {} USD", why,
                   rental_.cluster, time_words(rental_.terms.hold_s), cloud::dollars_text(cost)));
  tell(fmt::format("lockstep sync {} --back PATH brings them, lockstep down {} ends it",
                   rental_.cluster, rental_.cluster));
  return {};
}

Result<int> RentedRun::finish(const RemoteOutcome& ended) {
  if (ended.left) {
    const std::string idle =
        rental_.terms.autostop_s > 0
            ? fmt::format("when it is idle for {}, or ", time_words(rental_.terms.autostop_s))
            : std::string();
    tell(fmt::format("'{}' goes on: {} USD an hour; it ends {}{}", rental_.cluster,
                     cloud::dollars_text(cloud::rate_now(rental_)), idle,
                     date_text(rental_.ends_ms)));
    return ended.code;
  }
  if (!ended.job.empty() && (!ended.gone || first_runs()))
    if (const Status brought = bring_back(); !brought)
      if (hold(brought.error().message)) return ended.code == 0 ? 1 : ended.code;
  if (const Status locked = take_lock(); !locked) {
    print_error(kRentedRun, locked.error());
    return ended.code == 0 ? 1 : ended.code;
  }
  if (rental_.closed_ms != 0) {
    tell(fmt::format("'{}' was given back by another lockstep", rental_.cluster));
    return ended.code;
  }
  if (const Status back = give_machines_back(world_, kRentedRun, rental_); !back) {
    print_error(kRentedRun, back.error());
    return ended.code == 0 ? 1 : ended.code;
  }
  return ended.code;
}

// Whether the machine is there whose files --back brings.
bool RentedRun::first_runs() {
  cloud::Rental now = rental_;
  if (!world_.look_only(now)) return true;
  const auto live = now.live();
  return std::any_of(live.begin(), live.end(), [](const cloud::Held* held) {
    return held->node == 0 && held->machine.state == cloud::Machine::State::running;
  });
}

// What the job has saved when its machines are taken.
void RentedRun::save(const RemoteOutcome& ended) {
  Status brought;
  if (ended.gone && !first_runs())
    brought = fail(Errc::unavailable, "its machine is gone");
  else
    brought = bring_back();
  if (brought)
    brought_ = brought_ || !options_.back.empty();
  else
    tell("what --back names was not brought back: " + brought.error().message);
}

// False: they were given back meanwhile, so that nobody wants others.
Result<bool> RentedRun::replace_machines() {
  Result<bool> wanted = false;
  if (const Status locked = take_lock(); !locked)
    wanted = Failure(locked.error());
  else if (rental_.closed_ms == 0)
    wanted = rent_again().map([] { return true; });
  world_.unlock(rental_.cluster);
  return wanted;
}

Result<int> RentedRun::run() {
  const int stops = proc::SignalWatch::stops();
  while (true) {
    const RemoteOutcome ended = attempt();
    const auto stopped = [stops] { return proc::SignalWatch::stops() != stops; };
    if (ended.left || ended.code == 0 || stopped() || !was_taken()) return finish(ended);
    if (!ended.job.empty()) save(ended);
    if (stopped()) return finish({.code = ended.code, .job = {}});
    auto wanted = replace_machines();
    if (wanted && !*wanted) return finish({.code = ended.code, .job = {}});
    if (wanted) continue;
    if (wanted.error().code == Errc::canceled && wanted.error().sys == 0)
      wanted.error().sys = world_.take_signal();
    print_error(kRentedRun, wanted.error());
    (void)finish({.code = 1, .job = {}});
    return exit_code_of(wanted.error());
  }
}

Result<int> rent_and_run(const Call& call, const RemoteOptions& remote,
                         const OnDemandOptions& options) {
  if (remote.elsewhere())
    return fail(
        Errc::invalid_input,
        fmt::format("both {} and --on-demand say where it runs", remote.on ? "--on" : "--hostfile"),
        "give one of them");
  if (!options.print) LOCKSTEP_TRY(check_job(call, remote, options.back));
  RentRequest request{.program = kRentedRun,
                      .cluster = remote.name ? *remote.name : "run-" + to_lower(random_suffix(6)),
                      .options = options,
                      .nodes = remote.place.nodes,
                      .json = remote.json};
  LOCKSTEP_TRY_ASSIGN(const auto world, cluster::OnDemand::open());
  keep_guarded(*world, kRentedRun);
  LOCKSTEP_TRY_ASSIGN(Rented rented, rent_machines(*world, request));
  if (!rented.rental) return 0;
  world->unlock(request.cluster);
  return RentedRun(call, remote, options, *world, std::move(*rented.rental)).run();
}

}  // namespace

int run_on_rented(const Call& call, const RemoteOptions& remote, const OnDemandOptions& options) {
  const auto code = rent_and_run(call, remote, options);
  if (code) return *code;
  print_error(kRentedRun, code.error());
  return exit_code_of(code.error());
}

std::string needs_on_demand(const Parsed& parsed) {
  for (const Option& option : on_demand_rows())
    if (parsed.has(option.name)) return "--" + std::string(option.name);
  return {};
}

}  // namespace lockstep::cli
