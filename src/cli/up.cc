// lockstep up, keep and cost: rents machines as a cluster, postpones their end, shows their cost.
#include "base/columns.h"
#include "base/date_text.h"
#include "base/text.h"
#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "cli/on_demand_words.h"
#include "cli/owner_host.h"
#include "cli/rent_tables.h"
#include "cli/subcommand.h"
#include "cli/swept.h"
#include "codec/json.h"
#include "codec/json_members.h"
#include "hosts/place.h"
#include "io/own_folders.h"
#include "jobs/rented/owned_job.h"
#include "jobs/rented/owner_ask.h"
#include "rent/ended_by.h"
#include "rent/move_end.h"
#include "rent/rented_host.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

using cloud::Rental;

constexpr const char* kFixedWords =
    ": the provider ends the machine then and cannot move the end; only `lockstep up --lifetime` "
    "sets it";
constexpr std::int64_t kMostHeld = 31LL * 86'400;  // seconds; a lease refuses more

// Returns the only name of the command line. example: a correct line, for the error.
Result<std::string> the_name(const Parsed& parsed, const char* example) {
  if (parsed.names.size() == 1) return parsed.names.front();
  return fail(Errc::invalid_input,
              parsed.names.empty()
                  ? std::string("no cluster is named")
                  : fmt::format("'{}' is one word too many", printable(parsed.names[1])),
              fmt::format("write {}", example));
}

// --- up

std::string up_words(const rent::OnDemand& world, const Rental& rental) {
  const rent::EndedBy by = rent::ended_by(world, rental);
  const std::string rate = cloud::dollars_text(cloud::rate_now(rental));
  if (by == rent::EndedBy::nobody)
    return fmt::format(
        "'{0}' is up: {1} USD an hour; it runs until you end it with lockstep down {0}",
        rental.cluster, rate);
  return fmt::format("'{}' is up: {} USD an hour, ends {} at the latest{}", rental.cluster, rate,
                     date_text(rent::certain_end_ms(world, rental)),
                     ended_by_words(ended_by_name(by), rental.terms.guard));
}

Result<ExitCode> bring_up(const Call& call, Swept& swept) {
  RentRequest request{.program = up_table().program, .cluster = {}, .options = {}, .nodes = {}};
  UpOptions own;
  fill(up_table(), call.parsed, request.options);
  fill(up_table(), call.parsed, own);
  request.nodes = own.nodes;
  request.json = own.json;
  LOCKSTEP_TRY_ASSIGN(request.cluster, the_name(call.parsed, "lockstep up NAME --gpus A100:8"));
  LOCKSTEP_TRY_ASSIGN(rent::OnDemand* const world, swept.open());
  // up starts no sweep here: rent_machines() asks for offers and machines in one round.
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
  // Nothing was rented: --print. A program still gets the machines that exist under this name.
  if (!rented.rental && own.json)
    if (auto known = world->journal().of_cluster(request.cluster))
      rented.rental = std::move(*known);
  if (!rented.rental) return ExitCode::ok;
  if (own.json)
    std::puts(codec::print_json(rental_row(*world, *rented.rental)).c_str());
  else
    tell_line(request.program, up_words(*world, *rented.rental));
  return ExitCode::ok;
}

// --- keep

// Tells the guard of the new end. Refuses the new end if a guard on another host does not answer:
// that guard would terminate the machines at the old time.
Status keep_with_guard(rent::OnDemand& world, Rental rental, std::int64_t end,
                       rent::GuardNewsKind kind) {
  const std::string old = date_text(std::exchange(rental.ends_ms, end));
  Status told = world.guards().tell(rental, kind);
  if (told) return {};
  told.error().message +=
      fmt::format("; nothing is changed: the guard ends '{}' {}", rental.cluster, old);
  return told;
}

// Writes the new end into the journal. Replacements for lost machines get their lease from these
// terms.
Status keep_in_journal(rent::OnDemand& world, Rental& rental, std::int64_t end, std::int64_t now) {
  Rental changed = rental;
  changed.ends_ms = end;
  changed.terms.lifetime_s = (end - cloud::began_ms(rental, now)) / 1000;
  LOCKSTEP_TRY(world.journal().keep(changed));
  rental = std::move(changed);
  return {};
}

// Suspends --autostop until the new end. Otherwise ten idle minutes would still end the machines.
// Do this last: after a failure here machines may end early, but never run longer than the journal
// says.
Status suspend_autostop(const std::vector<hosts::HostPlace>& places, const Rental& rental,
                        std::int64_t seconds) {
  LOCKSTEP_TRY_ASSIGN(const auto held, rent::hold_leases(places, std::min(seconds, kMostHeld)));
  for (const rent::LeaseAnswer& answer : held)
    if (!answer.error.empty())
      return fail(Errc::unavailable,
                  fmt::format("{}; '{}' ends {} at the latest, and earlier if it is idle",
                              answer.error, rental.cluster, date_text(rental.ends_ms)),
                  "repeat lockstep keep");
  return {};
}

Result<ExitCode> keep_up(const Call& call, Swept& swept) {
  const auto& names = call.parsed.names;
  if (names.size() != 2)
    return fail(Errc::invalid_input, "a cluster and a length of time are needed",
                "write lockstep keep NAME 2h");
  LOCKSTEP_TRY_ASSIGN(const std::int64_t seconds, parse_time("TIME", names[1]));
  LOCKSTEP_TRY(hosts::check_cluster_name(names[0]));
  LOCKSTEP_TRY_ASSIGN(const auto there, pass_to_owner(call, {"keep"}));
  if (there) return *there;
  LOCKSTEP_TRY_ASSIGN(rent::OnDemand* const world, swept.open());
  swept.begin();
  // Another command may change the same rental: read it under the lock only.
  LOCKSTEP_TRY(world->locks().take(names[0]));
  LOCKSTEP_TRY_ASSIGN(Rental rental, world->journal().of_cluster(names[0]));
  const std::int64_t now = world->web().now_ms();
  const rent::KeptEnd kept =
      rent::kept_end(rental, rent::fixed_end_ms(*world, rental), seconds, now);
  const std::int64_t end = kept.ms;
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(const auto places, hosts::find_places(registry, names[0], std::nullopt, {}));
  const rent::EndKeepers keepers{
      .guard =
          [&](std::int64_t ends, rent::GuardNewsKind kind) {
            return keep_with_guard(*world, rental, ends, kind);
          },
      .leases = [](const auto& machines,
                   std::int64_t ends) { return rent::keep_leases(machines, ends); },
      .journal = [&](std::int64_t ends) { return keep_in_journal(*world, rental, ends, now); }};
  LOCKSTEP_TRY(rent::move_end(keepers, places, rental.ends_ms, end));
  LOCKSTEP_TRY(suspend_autostop(places, rental, (end - now) / 1000));
  if (rent::ended_by(*world, rental) == rent::EndedBy::nobody) {
    std::puts(fmt::format("'{}' is off {} at the latest, in {}; {}", names[0], date_text(end),
                          time_words((end - now) / 1000), rent::end_words(*world, rental))
                  .c_str());
    return ExitCode::ok;
  }
  std::puts(fmt::format("'{}' ends {} at the latest, in {}{}", names[0], date_text(end),
                        time_words((end - now) / 1000),
                        end >= now + seconds * 1000 ? ""
                        : kept.fixed                ? kFixedWords
                                                    : ": the budget does not pay for more")
                .c_str());
  return ExitCode::ok;
}

// --- cost

std::string state_words(const rent::OnDemand& world, const Rental& rental) {
  if (rental.closed_ms != 0) return "terminated";
  return std::string(rental.wanted ? "rented" : "ending") +
         (cloud::has_unanswered(rental) ? ", a launch without an answer" : "") +
         ended_by_words(ended_by_name(rent::ended_by(world, rental)), rental.terms.guard);
}

// Asks the hosts that own rentals for the rows of `cost --json`, and adds the member `host` to each
// row. The rows of a silent host are missing.
Result<std::vector<nlohmann::json>> cost_elsewhere(const CostOptions& options,
                                                   const std::vector<cloud::RentedJob>& owned) {
  std::vector<nlohmann::json> rows;
  for (const cloud::RentedJob& job : owned) {
    Args command = {"ask", job.rental, job.cluster, "cost", job.cluster, "--json"};
    if (options.since) command.push_back("--since=" + *options.since);
    const auto said = jobs::rented::ask_owner(job.host, command);
    if (!said && said.error().code == Errc::canceled) return Failure(said.error());
    if (!said) print_error(cost_table().program, said.error());
    const nlohmann::json there = said ? codec::parse_json(*said) : nlohmann::json();
    if (!there.is_object() || !there.contains("rentals")) continue;
    for (const nlohmann::json& row : there["rentals"]) {
      rows.push_back(row);
      if (row.is_object()) rows.back()["host"] = job.host;
    }
  }
  return rows;
}

Result<ExitCode> show_cost(const Call& call, Swept& swept) {
  CostOptions options;
  fill(cost_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const auto there, pass_to_owner(call, {"cost"}));
  if (there) return *there;
  std::int64_t seconds = 0;
  if (options.since) {
    LOCKSTEP_TRY_ASSIGN(seconds, parse_time("since", *options.since));
  }
  LOCKSTEP_TRY_ASSIGN(rent::OnDemand* const world, swept.open());
  swept.begin();
  LOCKSTEP_TRY_ASSIGN(std::vector<Rental> rentals, world->journal().open_rentals());
  // Wait for the sweep first. The sweep closes rentals without machines, and --json contains the
  // result.
  if (!rentals.empty() || options.json) swept.tell();
  // After Ctrl-C the sweep is incomplete, and a program would take the list for complete.
  if (options.json) LOCKSTEP_TRY(world->signals().check());
  if (options.since) {
    LOCKSTEP_TRY_ASSIGN(rentals, world->journal().since(world->web().now_ms() - seconds * 1000));
  } else {
    LOCKSTEP_TRY_ASSIGN(rentals, world->journal().open_rentals());
  }
  if (!call.parsed.names.empty())
    std::erase_if(rentals, [&](const Rental& one) {
      return std::find(call.parsed.names.begin(), call.parsed.names.end(), one.cluster) ==
             call.parsed.names.end();
    });
  // After begin(), which forgets jobs that have ended.
  std::vector<cloud::RentedJob> owned;
  if (call.parsed.names.empty()) {
    LOCKSTEP_TRY_ASSIGN(owned, jobs::rented::owned_among(world->journal()));
  }
  cloud::Micros sum = 0;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::vector<std::array<std::string, 5>> lines = {{"CLUSTER", "RENTED", "STATE", "USD/H", "USD"}};
  for (const Rental& rental : rentals) {
    sum += cloud::cost_so_far(rental, world->now_ms());
    rows.push_back(rental_row(*world, rental));
    lines.push_back({rental.cluster, date_text(rental.created_ms), state_words(*world, rental),
                     cloud::dollars_text(cloud::rate_now(rental)),
                     cloud::dollars_text(cloud::cost_so_far(rental, world->now_ms()))});
  }
  LOCKSTEP_TRY_ASSIGN(const auto elsewhere, cost_elsewhere(options, owned));
  for (const nlohmann::json& row : elsewhere) {
    const cloud::Micros cost = codec::integer_member(row, "cost_micros");
    lines.push_back({printable(codec::text_member(row, "name"), 63),
                     date_text(codec::integer_member(row, "created_ms")),
                     "at " + codec::text_member(row, "host"),
                     cloud::dollars_text(codec::integer_member(row, "micros_per_hour")),
                     cloud::dollars_text(cost)});
    sum += cost;
    rows.push_back(nlohmann::ordered_json(row));
  }
  if (options.json) {
    std::puts(codec::print_json(nlohmann::ordered_json{{"rentals", std::move(rows)},
                                                       {"cost_micros", sum},
                                                       {"swept", swept_json(swept.found())}})
                  .c_str());
    return ExitCode::ok;
  }
  lines.push_back({"in all", "", "", "", cloud::dollars_text(sum)});
  std::fputs(columns_text(lines).c_str(), stdout);
  return ExitCode::ok;
}

template <Result<ExitCode> (*act)(const Call&, Swept&), const Table& (*table)()>
Result<ExitCode> carry_out_rent(const Call& call) {
  return run_swept(call, table(), act);
}

}  // namespace

extern constinit const Subcommand kUp{.name = "up",
                                      .summary = "rent machines as a cluster",
                                      .table = up_table,
                                      .run = carry_out_rent<bring_up, up_table>,
                                      .signals = Signals::blocked};
extern constinit const Subcommand kKeep{.name = "keep",
                                        .summary = "give rented machines more time",
                                        .table = keep_table,
                                        .run = carry_out_rent<keep_up, keep_table>,
                                        .signals = Signals::blocked};
extern constinit const Subcommand kCost{.name = "cost",
                                        .summary = "show the cost of rented machines",
                                        .table = cost_table,
                                        .run = carry_out_rent<show_cost, cost_table>,
                                        .signals = Signals::blocked};

}  // namespace lockstep::cli
