// lockstep up, down, keep and cost: rented machines as a cluster.
#include "base/columns.h"
#include "base/text.h"
#include "cli/date_text.h"
#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "cli/on_demand_words.h"
#include "cli/rent_tables.h"
#include "cli/subcommand.h"
#include "cli/swept.h"
#include "cloud/kept_answer.h"
#include "cluster/job_book.h"
#include "cluster/place.h"
#include "cluster/rented_host.h"
#include "codec/json.h"
#include "io/own_folders.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

using cloud::Rental;

constexpr int kTriesToEnd = 180;                   // once a second: machines take so long to end
constexpr std::int64_t kMostHeld = 31LL * 86'400;  // seconds, as a machine takes them

nlohmann::ordered_json rental_row(const cluster::OnDemand& world, const Rental& rental) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  std::string place;
  for (const cloud::Held* held : rental.live())
    nodes.push_back(
        {{"id", held->machine.id},
         {"address", held->machine.address},
         {"zone", held->machine.zone.empty() ? held->machine.region : held->machine.zone}});
  return {{"name", rental.cluster},
          {"nodes", std::move(nodes)},
          {"micros_per_hour", cloud::rate_now(rental)},
          {"cost_micros", world.cost(rental)},
          {"created_ms", rental.created_ms},
          {"ends_ms", rental.ends_ms},
          {"ended_by", ended_by_name(ended_by(world, rental))},
          {"guard", rental.terms.guard},
          {"closed_ms", rental.closed_ms}};
}

Result<std::string> the_name(const Parsed& parsed, const char* example) {
  if (parsed.names.size() == 1) return parsed.names.front();
  return fail(Errc::invalid_input,
              parsed.names.empty()
                  ? std::string("no cluster is named")
                  : fmt::format("'{}' is one word too many", printable(parsed.names[1])),
              fmt::format("write {}", example));
}

// --- up

std::string up_words(const cluster::OnDemand& world, const Rental& rental) {
  const EndedBy by = ended_by(world, rental);
  const std::string rate = cloud::dollars_text(cloud::rate_now(rental));
  if (by == EndedBy::nobody)
    return fmt::format(
        "'{0}' is up: {1} USD an hour until you end it: nobody ends it but you, "
        "with lockstep down {0}",
        rental.cluster, rate);
  return fmt::format("'{}' is up: {} USD an hour, ends {} at the latest{}", rental.cluster, rate,
                     date_text(rental.ends_ms),
                     ended_by_words(ended_by_name(by), rental.terms.guard));
}

Result<int> bring_up(const Call& call, Swept& swept) {
  RentRequest request{.program = up_table().program, .cluster = {}, .options = {}, .nodes = {}};
  UpOptions own;
  fill(up_table(), call.parsed, request.options);
  fill(up_table(), call.parsed, own);
  request.nodes = own.nodes;
  request.json = own.json;
  LOCKSTEP_TRY_ASSIGN(request.cluster, the_name(call.parsed, "lockstep up NAME --gpus A100:8"));
  LOCKSTEP_TRY_ASSIGN(cluster::OnDemand* const world, swept.open());
  keep_guarded(*world, request.program);
  if (!request.options.gpus && !world->journal().of_cluster(request.cluster)) {
    LOCKSTEP_TRY_ASSIGN(request.standing, standing_rental(*world, request.cluster));
    if (!request.standing)
      return fail(
          Errc::invalid_input,
          fmt::format("'{}' is not known, and --gpus is not given", printable(request.cluster, 63)),
          "write lockstep up NAME --gpus A100:8");
  }
  LOCKSTEP_TRY_ASSIGN(Rented rented, rent_machines(*world, request));
  if (!rented.rental) return 0;
  if (own.json)
    std::puts(codec::print_json(rental_row(*world, *rented.rental)).c_str());
  else
    tell_line(request.program, up_words(*world, *rented.rental));
  return 0;
}

// --- down

// Jobs that were running when they were last heard of.
std::vector<std::string> jobs_there(const std::string& cluster) {
  std::vector<std::string> names;
  const auto book = cluster::JobBook::open(io::state_folder());
  if (!book) return names;
  const auto jobs = book->list(200);
  if (!jobs) return names;
  for (const cluster::KnownJob& job : *jobs)
    if (job.place == cluster &&
        (job.stage == job::Stage::running || job.stage == job::Stage::queued))
      names.push_back(job.id);
  return names;
}

Status agree_to_end(const std::string& cluster, const DownOptions& options) {
  const std::vector<std::string> jobs = jobs_there(cluster);
  if (jobs.empty() || options.force || options.yes) return {};
  const std::string what = fmt::format("job {} may still run on '{}'", join(jobs, ", "), cluster);
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
    return fail(Errc::invalid_input, what, "give --force, or cancel it first");
  std::fputs(fmt::format("{}; end it? [y/N] ", what).c_str(), stderr);
  char answer = 0;
  if (read(STDIN_FILENO, &answer, 1) == 1 && (answer == 'y' || answer == 'Y')) return {};
  return fail(Errc::canceled, "nothing was ended");
}

Result<int> end_orphans(cluster::OnDemand& world, const DownOptions& options) {
  LOCKSTEP_TRY_ASSIGN(const auto swept, world.sweep());
  const std::int64_t now = world.web().now_ms();
  if (options.json) {
    nlohmann::ordered_json ended = nlohmann::ordered_json::array();
    for (const cloud::Leftover& one : swept.ended)
      ended.push_back({{"provider", one.provider},
                       {"id", one.machine.id},
                       {"region", one.machine.region},
                       {"error", one.error.message}});
    std::puts(codec::print_json(ended).c_str());
  } else {
    tell_sweep(down_table().program, swept, now);
    if (swept.ended.empty() && swept.unheard.empty())
      std::puts(world.with_keys({}) ? "nothing of ours is there that nobody wants"
                                    : "no provider was asked: no keys are found");
  }
  const bool bad = std::any_of(swept.ended.begin(), swept.ended.end(),
                               [](const auto& one) { return !one.error.message.empty(); });
  return bad || !swept.unheard.empty() ? 1 : 0;
}

// Whoever rents it ends that once nobody wants it, and nobody follows a job that the journal has no
// more.
Status lock_to_end(cluster::OnDemand& world, const Rental& rental) {
  Status locked = world.lock(rental.cluster);
  if (locked) return locked;
  LOCKSTEP_TRY(world.journal().ask_to_end(rental.id));
  tell_line(down_table().program,
            fmt::format("another lockstep has '{}' in hands: that ends first", rental.cluster));
  for (int tries = 0; !locked && tries < kTriesToEnd; ++tries) {
    // Each time: a word of it that was on its way may have come since.
    LOCKSTEP_TRY(world.journal().drop_job(rental.id));
    LOCKSTEP_TRY(world.web().pause(std::chrono::seconds(1)));
    locked = world.lock(rental.cluster);
  }
  if (locked) return world.journal().drop_job(rental.id);
  locked.error().hint = "it is noted that nobody wants it: it ends once that one is gone";
  return locked;
}

// By whoever had it in hands.
void tell_gone(cluster::OnDemand& world, Rental& rental) {
  const auto known = world.journal().since(rental.created_ms);
  if (known)
    for (const Rental& one : *known)
      if (one.id == rental.id) rental = one;
  tell_line(down_table().program,
            rental.closed_ms != 0
                ? fmt::format("'{}' is given back; it cost {} USD", rental.cluster,
                              cloud::dollars_text(world.cost(rental)))
                : fmt::format("'{}' is gone already", rental.cluster));
}

// As the rental is once nobody else can change it.
Status give_back_locked(cluster::OnDemand& world, Rental& rental) {
  LOCKSTEP_TRY(lock_to_end(world, rental));
  auto now = world.journal().of_cluster(rental.cluster);
  if (now ? now->id != rental.id : now.error().code == Errc::not_found) {
    tell_gone(world, rental);
    return {};
  }
  if (!now) return Failure(now.error());
  rental = std::move(*now);
  LOCKSTEP_TRY(give_machines_back(world, down_table().program, rental));
  // Who has asked for its end need not be told of it.
  return world.journal().drop_job(rental.id);
}

// Whether a machine was asked for there since then.
bool used_since(cluster::OnDemand& world, std::string_view provider, std::int64_t ms) {
  if (ms == 0) return world.journal().ever_used(provider).value_or(false);
  const auto rentals = world.journal().since(ms);
  if (!rentals) return false;
  for (const Rental& rental : *rentals)
    for (const cloud::Attempt& attempt : rental.attempts)
      if (attempt.offer.provider == provider && attempt.asked_ms > ms) return true;
  return false;
}

// What renting has made besides machines, once none of them is there: for each provider once after
// the last rental there. It costs nothing, so nothing about it is a failure. Who rents from now on
// is in the journal, or waits to make it anew.
void clean_up(cluster::OnDemand& world) {
  const auto mine = world.hold_account();
  if (!mine || !*mine) return;
  const auto open = world.journal().open_rentals();
  if (!open || !open->empty()) return;
  const std::int64_t now = world.web().now_ms();
  for (cloud::Provider* provider : world.keyed()) {
    const std::string name(provider->traits().name);
    const std::string kept = "cleaned-" + name;
    const auto before = cloud::kept_answer(world.cache(), kept, now, now);
    if (!used_since(world, name, before ? before->as_of_ms : 0)) continue;
    const Status cleaned = provider->clean(world.web());
    if (cleaned) cloud::keep_answer(world.cache(), kept, world.owner(), now);
    tell_line(down_table().program,
              fmt::format(
                  "{}: what was made there besides machines {}", name,
                  cleaned ? "is removed" : "stays, and costs nothing: " + cleaned.error().message));
  }
}

Result<int> take_down(const Call& call, Swept& swept) {
  DownOptions options;
  fill(down_table(), call.parsed, options);
  std::vector<std::string> names = call.parsed.names;
  if (names.empty() && !options.all && !options.orphans)
    return fail(Errc::invalid_input, "nothing is named", "write lockstep down NAME, or --all");
  LOCKSTEP_TRY_ASSIGN(cluster::OnDemand* const world, swept.open());
  if (options.all) {
    LOCKSTEP_TRY_ASSIGN(const auto open, world->journal().open_rentals());
    for (const Rental& rental : open)
      names.push_back(rental.cluster);
  }
  int code = 0;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::string& name : names) {
    auto rental = world->journal().of_cluster(name);
    if (!rental && rental.error().code == Errc::not_found) {
      // What is gone already is no error, what never was is one.
      LOCKSTEP_TRY_ASSIGN(const bool was, world->journal().ever_rented(name));
      if (!was) return Failure(rental.error());
      tell_line(down_table().program, fmt::format("'{}' is gone already", name));
      continue;
    }
    if (!rental) return Failure(rental.error());
    LOCKSTEP_TRY(agree_to_end(name, options));
    Status done = give_back_locked(*world, *rental);
    world->unlock(name);
    rows.push_back(rental_row(*world, *rental));
    if (done) continue;
    const int signal = world->take_signal();
    print_error(down_table().program, done.error());
    code = signal == 0 ? 1 : 128 + signal;
    if (signal != 0) break;
  }
  if (options.json && !options.orphans) std::puts(codec::print_json(rows).c_str());
  if (!options.all && !options.orphans) {
    if (code < 128) swept.begin();
    return code;
  }
  keep_guarded(*world, down_table().program);
  LOCKSTEP_TRY_ASSIGN(const int orphans, end_orphans(*world, options));
  if (options.all && code == 0 && orphans == 0) clean_up(*world);
  return code == 0 ? orphans : code;
}

// --- keep

// A guard elsewhere that has not heard of it would end them at the old time.
Status keep_with_guard(cluster::OnDemand& world, Rental rental, std::int64_t end) {
  const std::string old = date_text(rental.ends_ms);
  rental.ends_ms = end;
  Status told = world.guards().tell(rental, cluster::GuardNewsKind::working);
  if (told) return {};
  told.error().message += fmt::format("; nothing is changed: it ends '{}' {}", rental.cluster, old);
  return told;
}

Result<int> keep_up(const Call& call, Swept& swept) {
  const auto& names = call.parsed.names;
  if (names.size() != 2)
    return fail(Errc::invalid_input, "a cluster and a length of time are needed",
                "write lockstep keep NAME 2h");
  LOCKSTEP_TRY_ASSIGN(const std::int64_t seconds, parse_time("TIME", names[1]));
  LOCKSTEP_TRY_ASSIGN(cluster::OnDemand* const world, swept.open());
  swept.begin();
  LOCKSTEP_TRY(cluster::check_cluster_name(names[0]));
  LOCKSTEP_TRY(world->lock(names[0]));
  LOCKSTEP_TRY_ASSIGN(Rental rental, world->journal().of_cluster(names[0]));
  const std::int64_t now = world->web().now_ms();
  cloud::Terms terms = rental.terms;
  terms.lifetime_s = seconds;
  // More time, never less: what was agreed at first holds in any case.
  const std::int64_t end = std::max(
      cloud::lease_end(terms, cloud::rate_now(rental), world->cost(rental), now, now).value_or(now),
      rental.ends_ms);
  LOCKSTEP_TRY_ASSIGN(const cluster::Registry registry,
                      cluster::Registry::open(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(const auto places,
                      cluster::find_places(registry, names[0], std::nullopt, {}));
  LOCKSTEP_TRY(keep_with_guard(*world, rental, end));
  LOCKSTEP_TRY_ASSIGN(const auto answers, cluster::keep_leases(places, end));
  for (const cluster::LeaseAnswer& answer : answers)
    if (!answer.error.empty()) {
      (void)world->guards().tell(rental, cluster::GuardNewsKind::noting);
      return fail(Errc::unavailable, answer.error);
    }
  // Who wants them so long wants them idle, too.
  LOCKSTEP_TRY_ASSIGN(const auto held,
                      cluster::hold_leases(places, std::min((end - now) / 1000, kMostHeld)));
  for (const cluster::LeaseAnswer& answer : held)
    if (!answer.error.empty()) return fail(Errc::unavailable, answer.error);
  rental.ends_ms = end;
  // For machines that take the place of those that are lost.
  rental.terms.lifetime_s = (end - cloud::began_ms(rental, now)) / 1000;
  LOCKSTEP_TRY(world->journal().keep(rental));
  const bool less = end < now + seconds * 1000;
  std::puts(fmt::format("'{}' ends {} at the latest, in {}{}", names[0], date_text(end),
                        time_words((end - now) / 1000), less ? ": its budget pays for no more" : "")
                .c_str());
  return 0;
}

// --- cost

std::string state_words(const cluster::OnDemand& world, const Rental& rental) {
  if (rental.closed_ms != 0) return "given back";
  return (rental.wanted ? "rented" : "ending") +
         ended_by_words(ended_by_name(ended_by(world, rental)), rental.terms.guard);
}

Result<int> show_cost(const Call& call, Swept& swept) {
  CostOptions options;
  fill(cost_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(cluster::OnDemand* const world, swept.open());
  swept.begin();
  LOCKSTEP_TRY_ASSIGN(std::vector<Rental> rentals, world->journal().open_rentals());
  // What may be gone is looked at first, as is what a program is to be told of.
  if (!rentals.empty() || options.json) swept.tell();
  if (options.since) {
    LOCKSTEP_TRY_ASSIGN(const std::int64_t seconds, parse_time("since", *options.since));
    LOCKSTEP_TRY_ASSIGN(rentals, world->journal().since(world->web().now_ms() - seconds * 1000));
  } else {
    LOCKSTEP_TRY_ASSIGN(rentals, world->journal().open_rentals());
  }
  if (!call.parsed.names.empty())
    std::erase_if(rentals, [&](const Rental& one) {
      return std::find(call.parsed.names.begin(), call.parsed.names.end(), one.cluster) ==
             call.parsed.names.end();
    });
  cloud::Micros sum = 0;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::vector<std::array<std::string, 5>> lines = {{"CLUSTER", "RENTED", "STATE", "USD/H", "USD"}};
  for (const Rental& rental : rentals) {
    sum += world->cost(rental);
    rows.push_back(rental_row(*world, rental));
    lines.push_back({rental.cluster, date_text(rental.created_ms), state_words(*world, rental),
                     cloud::dollars_text(cloud::rate_now(rental)),
                     cloud::dollars_text(world->cost(rental))});
  }
  if (options.json) {
    std::puts(codec::print_json(nlohmann::ordered_json{{"rentals", std::move(rows)},
                                                       {"cost_micros", sum},
                                                       {"swept", swept_json(swept.found())}})
                  .c_str());
    return 0;
  }
  lines.push_back({"in all", "", "", "", cloud::dollars_text(sum)});
  std::fputs(columns_text(lines).c_str(), stdout);
  return 0;
}

template <Result<int> (*act)(const Call&, Swept&), const Table& (*table)()>
int carry_out_rent(const Call& call) {
  proc::block(proc::handled_signals());
  signal(SIGCHLD, SIG_DFL);
  Swept swept(table().program);
  const auto code = act(call, swept);
  if (!code) print_error(table().program, code.error());
  return swept.end(code ? *code : exit_code_of(code.error()));
}

}  // namespace

extern constinit const Subcommand kUp{.name = "up",
                                      .summary = "rent machines and keep them as a cluster",
                                      .table = up_table,
                                      .run = carry_out_rent<bring_up, up_table>};
extern constinit const Subcommand kDown{.name = "down",
                                        .summary = "give rented machines back",
                                        .table = down_table,
                                        .run = carry_out_rent<take_down, down_table>};
extern constinit const Subcommand kKeep{.name = "keep",
                                        .summary = "give rented machines more time",
                                        .table = keep_table,
                                        .run = carry_out_rent<keep_up, keep_table>};
extern constinit const Subcommand kCost{.name = "cost",
                                        .summary = "what rented machines have cost",
                                        .table = cost_table,
                                        .run = carry_out_rent<show_cost, cost_table>};

}  // namespace lockstep::cli
