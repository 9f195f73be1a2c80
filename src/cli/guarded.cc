#include "cli/guarded.h"

#include "base/clock_ms.h"
#include "cli/on_demand.h"
#include "cli/owner_host.h"
#include "jobs/rented/course_words.h"
#include "jobs/rented/owner_rules.h"
#include "jobs/rented/untold_ends.h"
#include "rent/guard.h"
#include "rent/guard_plan.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <array>

namespace lockstep::cli {
namespace {

// Returns what happens to the rental if no guard runs.
std::string without_guard(const cloud::Rental& rental) {
  return rent::ends_itself(rental)
             ? fmt::format("no guard follows '{}' when its command is gone", rental.cluster)
             : fmt::format("nobody ends '{}'", rental.cluster);
}

// Returns how the job ended, as far as the journal knows.
std::string ending_words(const rent::OnDemand& world, const cloud::RentedJob& job,
                         const cloud::Rental* rental) {
  using JobStage = cloud::RentedJob::Stage;
  if (job.stage == JobStage::ended) return fmt::format("exit code {}, {}", job.code, job.note);
  const std::string cost = fmt::format(
      "terminated, {} USD", cloud::dollars_text(cloud::cost_so_far(*rental, world.now_ms())));
  if (job.stage == JobStage::ending)
    return fmt::format("exit code {}, {}{}", job.code, job.note.empty() ? "" : job.note + ", ",
                       cost);
  return cost + "; how it ended is not known";
}

// Tells the end of a job whose command is gone. closed: as in UntoldWords.
void tell_end(const rent::OnDemand& world, std::string_view program, const cloud::RentedJob& job,
              const cloud::Rental* closed) {
  const std::string ending = ending_words(world, job, closed);
  if (closed != nullptr && closed->terms.guard != "here")
    return tell_line(program, fmt::format("the command of '{}' was ended before it could say: {}",
                                          job.cluster, ending));
  tell_line(program, fmt::format("'{}' was followed after its command had gone: {}; {}",
                                 job.cluster, ending, rent::follow_log(job.cluster)));
}

void tell_jobs(rent::OnDemand& world, std::string_view program,
               const std::vector<cloud::Rental>& open) {
  const auto tell = [program](const std::string& text) { tell_line(program, text); };
  const Status told = jobs::rented::tell_untold_ends(
      world, open, owned_world(program),
      {.ended = [&](const cloud::RentedJob& job,
                    const cloud::Rental* closed) { tell_end(world, program, job, closed); },
       .followed =
           [&](const cloud::RentedJob& job, const Status& started) {
             tell(started ? fmt::format("no process followed the job of '{}'; one does now; {}",
                                        job.cluster, rent::follow_log(job.cluster))
                          : started.error().message);
           },
       .not_known =
           [&](const cloud::RentedJob& job, const Error& why) {
             tell(fmt::format("the state of the job of '{}' is not known: {}", job.cluster,
                              jobs::rented::error_line(why)));
           }});
  // Each host may take long to answer. The command sees that signal, too.
  if (!told && told.error().code == Errc::canceled && told.error().sys != 0)
    (void)kill(getpid(), told.error().sys);
}

}  // namespace

Status keys_of(const rent::OnDemand& world, const cloud::Rental& rental) {
  for (const cloud::Attempt& attempt : rental.attempts)
    if (cloud::Provider* one = world.providers().find(attempt.offer.provider);
        attempt.open() && one != nullptr)
      LOCKSTEP_TRY(one->keys());
  return {};
}

namespace {

void keep_guarded_here(rent::OnDemand& world, std::string_view program,
                       const std::vector<cloud::Rental>& rentals) {
  if (rentals.empty() || rent::guard_lives()) return;
  for (const cloud::Rental& rental : rentals)
    if (const Status keys = keys_of(world, rental); !keys)
      return tell_line(program, fmt::format("no guard runs, so {}: {}", without_guard(rental),
                                            keys.error().message));
  const std::string name = rentals.front().cluster;
  if (const auto up = rent::need_guard(world); !up)
    return tell_line(program, fmt::format("{}: {}; {}", without_guard(rentals.front()),
                                          up.error().message, up.error().hint));
  tell_line(program, fmt::format("the guard of '{}' did not run; it runs again", name));
}

// A command that holds the cluster's lock tells the guard by itself.
void keep_guarded_there(rent::OnDemand& world, std::string_view program,
                        const std::string& cluster) {
  if (!world.locks().take(cluster)) return;
  if (const auto rental = world.journal().of_cluster(cluster)) {
    using Word = rent::GuardHosts::Word;
    const rent::GuardHosts& guards = world.guards();
    (void)world.guards().tell(*rental, rent::GuardNewsKind::noting);
    const Word word = guards.word_of(*rental);
    if (word == Word::started)
      tell_line(program, fmt::format("the guard of '{}' on {} did not run; it runs again", cluster,
                                     rental->terms.guard));
    if (word == Word::over) tell_line(program, guards.trouble_of(*rental));
    if (word == Word::refuses)
      tell_line(program, fmt::format("{}: {}", without_guard(*rental), guards.trouble_of(*rental)));
    if (word == Word::silent)
      tell_line(program, fmt::format("'{}' may be without a guard: {}", cluster,
                                     guards.trouble_of(*rental)));
  }
  world.locks().release(cluster);
}

}  // namespace

const char* ended_by_name(rent::EndedBy by) {
  constexpr std::array<const char*, 4> kNames = {"itself", "guard", "guard-unheard", "nobody"};
  return kNames[static_cast<std::size_t>(by)];
}

std::string ended_by_words(std::string_view name, std::string_view where) {
  if (name == "itself") return "";
  if (name == "nobody") return ", nobody ends it but you";
  if (where == "here") return ", guarded here";
  return fmt::format(", guarded on {}{}", where,
                     name == "guard" ? "" : ", which does not answer now");
}

void keep_guarded_here(rent::OnDemand& world, std::string_view program) {
  auto rentals = world.journal().open_rentals();
  if (!rentals) return;
  std::erase_if(*rentals, [](const auto& rental) { return !rent::wants_guard(rental); });
  keep_guarded_here(world, program, *rentals);
}

void keep_guarded(rent::OnDemand& world, std::string_view program) {
  const auto rentals = world.journal().open_rentals();
  if (!rentals) return;
  tell_jobs(world, program, *rentals);
  jobs::rented::drop_old_logs(*rentals, unix_ms());
  std::vector<cloud::Rental> here;
  for (const cloud::Rental& rental : *rentals) {
    if (rent::wants_guard(rental)) here.push_back(rental);
    if (rent::concerns_guard(rental) && rent::has_open_attempt(rental))
      keep_guarded_there(world, program, rental.cluster);
  }
  keep_guarded_here(world, program, here);
}

Status agree_with_guard(rent::OnDemand& world, const cloud::Wish& wish, cloud::Terms& terms) {
  const cloud::Rental would{.id = {}, .cluster = {}, .owner = {}, .terms = terms};
  const std::string host = rent::guard_host_of(would);
  if (host.empty()) return {};
  LOCKSTEP_TRY_ASSIGN(const auto asked, world.providers().with_keys(wish.providers));
  std::vector<std::string> names;
  for (const cloud::Provider* provider : asked)
    if (provider->traits().ending == cloud::Ending::with_guard)
      names.emplace_back(provider->traits().name);
  if (names.empty()) return {};
  // --allow-from names all addresses to let in: do not add the guard's.
  LOCKSTEP_TRY_ASSIGN(const auto there,
                      world.guards().agree(host, names, terms.allow_from.empty()));
  terms.guard_from = there.cidr;
  return {};
}

}  // namespace lockstep::cli
