#include "cli/rented_places.h"

#include "base/clock_ms.h"
#include "base/date_text.h"
#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "codec/json_members.h"
#include "io/own_folders.h"
#include "proc/signals.h"
#include "rent/job_claim.h"
#include "rent/machines_for_use.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr std::string_view kRenting = "lockstep";
constexpr std::int64_t kLatelyMs = 30LL * 86'400'000;

// Blocks the handled signals for as long as machines are asked for, then restores the mask. A
// command whose row leaves signals alone, such as forward, must end by Ctrl-C afterwards.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    const sigset_t set = proc::handled_signals();
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

Status rent_standing(rent::OnDemand& world, const std::string& name) {
  LOCKSTEP_TRY_ASSIGN(auto standing, standing_rental(world, name));
  if (!standing)
    return fail(Errc::unavailable, fmt::format("nothing is rented for '{}' now", name),
                "lockstep up " + name + " --gpus GPU:COUNT rents it again");
  RentRequest request{.program = kRenting, .cluster = name, .options = {}, .nodes = {}};
  // The user agreed when the cluster was added.
  request.options.yes = true;
  request.standing = std::move(standing);
  LOCKSTEP_TRY(rent_machines(world, request));
  world.locks().release(name);
  return {};
}

Status end_rest(rent::OnDemand& world, cloud::Rental& rental) {
  if (rental.wanted)
    tell_line(kRenting, fmt::format("the machines of '{}' have ended", rental.cluster));
  return give_machines_back(world, kRenting, rental);
}

// These words also appear in JSON.
const char* who_sees_to(const cloud::RentedJob& job) {
  if (rent::job_is_claimed(job.rental)) return job.follower == 0 ? "command" : "follower";
  return "nobody";
}

}  // namespace

Status ensure_rented(const hosts::Registry& registry, const std::string& name) {
  const auto known = registry.find(name);
  if (!known || !known->is_rented()) return {};
  LOCKSTEP_TRY_ASSIGN(cloud::Journal journal, cloud::Journal::open(io::state_folder()));
  auto rental = journal.of_cluster(name);
  if (!rental && rental.error().code != Errc::not_found) return Failure(rental.error());
  if (rental && rent::use_surely_there(*rental, *known, unix_ms())) return {};
  const SignalsBlocked blocked;
  LOCKSTEP_TRY_ASSIGN(const auto world, rent::OnDemand::open());
  keep_guarded(*world, kRenting);
  LOCKSTEP_TRY_ASSIGN(const auto found,
                      rent::find_machines_for_use(*world, registry, name, [&](cloud::Rental& rest) {
                        return end_rest(*world, rest);
                      }));
  if (found.kind == rent::MachinesForUse::Kind::some)
    tell_line(
        kRenting,
        fmt::format("only --nodes {0} is left of the {1} machines of '{2}'; to rent all again: "
                    "lockstep down {2}, then lockstep up {2} --gpus GPU:COUNT",
                    found.left, known->nodes.size(), name));
  return found.kind == rent::MachinesForUse::Kind::none ? rent_standing(*world, name) : Status();
}

Result<nlohmann::json> rented_facts(const std::vector<hosts::Cluster>& clusters, Swept& swept) {
  nlohmann::json facts = nlohmann::json::object();
  // A user who never rented has no journal. Credentials found here then serve other purposes: do
  // not ask providers.
  const bool rented = std::any_of(clusters.begin(), clusters.end(),
                                  [](const hosts::Cluster& one) { return one.is_rented(); });
  if (!rented && access(cloud::Journal::path_in(io::state_folder()).c_str(), F_OK) != 0)
    return facts;
  LOCKSTEP_TRY_ASSIGN(rent::OnDemand* const world, swept.open());
  LOCKSTEP_TRY_ASSIGN(const bool lately, world->journal().any_since(unix_ms() - kLatelyMs));
  if (lately) swept.begin();
  LOCKSTEP_TRY_ASSIGN(const auto rentals, world->journal().open_rentals());
  for (const cloud::Rental& rental : rentals)
    facts[rental.cluster] = {{"micros_per_hour", cloud::rate_now(rental)},
                             {"cost_micros", cloud::cost_so_far(rental, world->now_ms())},
                             {"ends_ms", rent::certain_end_ms(*world, rental)},
                             {"ended_by", ended_by_name(rent::ended_by(*world, rental))},
                             {"guard", rental.terms.guard}};
  LOCKSTEP_TRY_ASSIGN(const auto jobs, world->journal().jobs());
  for (const cloud::Rental& rental : rentals)
    for (const cloud::RentedJob& job : jobs)
      if (job.rental == rental.id && job.stage != cloud::RentedJob::Stage::ended)
        facts[rental.cluster]["job"] = {{"id", job.job},
                                        {"stage", cloud::rented_job_stage(job.stage)},
                                        {"attempt", job.losses + 1},
                                        {"by", who_sees_to(job)},
                                        {"pid", job.follower},
                                        {"log", rent::follow_log(job.cluster)}};
  return facts;
}

std::string rented_job_words(const nlohmann::json& facts, const std::string& name) {
  const auto found = facts.find(name);
  if (found == facts.end() || !found->contains("job")) return {};
  const nlohmann::json& job = (*found)["job"];
  const std::string by = codec::text_member(job, "by");
  const std::string id = codec::text_member(job, "id");
  const std::string log = codec::text_member(job, "log");
  std::string who = "is followed by nobody just now";
  if (by == "command") who = "is with its command";
  if (by == "follower")
    who = fmt::format("is followed by process {}", codec::integer_member(job, "pid"));
  if (by == "follower") who += ": " + log;
  return fmt::format("its job ({}{}attempt {}, {}) {}", id, id.empty() ? "" : ", ",
                     codec::integer_member(job, "attempt"), codec::text_member(job, "stage"), who);
}

std::string rented_words(const nlohmann::json& facts, const std::string& name) {
  const auto found = facts.find(name);
  if (found == facts.end()) return "rented at its use";
  const std::string by = codec::text_member(*found, "ended_by");
  const std::string ends = by == ended_by_name(rent::EndedBy::nobody)
                               ? std::string()
                               : ", ends " + date_text(codec::integer_member(*found, "ends_ms"));
  return fmt::format("{} USD/h, {} spent{}{}",
                     cloud::dollars_text(codec::integer_member(*found, "micros_per_hour")),
                     cloud::dollars_text(codec::integer_member(*found, "cost_micros")), ends,
                     ended_by_words(by, codec::text_member(*found, "guard")));
}

Status forget_rented(const std::string& name) {
  LOCKSTEP_TRY_ASSIGN(cloud::Journal journal, cloud::Journal::open(io::state_folder()));
  if (journal.of_cluster(name))
    return fail(Errc::invalid_input, fmt::format("machines are rented for '{}'", name),
                "lockstep down " + name + " ends them");
  return journal.drop_standing(name);
}

}  // namespace lockstep::cli
