#include "cli/on_demand.h"

#include "base/mid_line.h"
#include "cli/guarded.h"
#include "cli/on_demand_words.h"
#include "cli/subcommand.h"
#include "codec/json.h"
#include "jobs/rented/owned_job.h"
#include "rent/command_rental.h"
#include "rent/ended_by.h"
#include "rent/gang.h"
#include "rent/guard.h"
#include "rent/market.h"
#include "rent/rented_cluster.h"
#include "rent/ssh_access.h"
#include "rent/sweep.h"
#include "ssh/other_binary.h"

#include <fmt/core.h>

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::int64_t kLeastPaidMs = 10LL * 60'000;

// Reads one line, "y" or "yes". Signals are blocked, so Ctrl-C arrives at stop_fd.
bool says_yes(int stop_fd) {
  std::string answer;
  char letter = 0;
  do {
    // The beginning is enough: a long line must not fill the memory.
    if (letter != 0 && answer.size() < 8) answer += letter;
    std::array<pollfd, 2> ready = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{stop_fd, POLLIN, 0}};
    if (poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return false;
    if (ready[1].revents != 0) return false;
  } while (read(STDIN_FILENO, &letter, 1) == 1 && letter != '\n');
  return answer == "y" || answer == "Y" || answer == "yes";
}

// Refuses a budget that does not pay for ten minutes.
Status check_budget(const cloud::Terms& terms, const cloud::Candidate& first) {
  if (!terms.budget) return {};
  const cloud::Micros least = cloud::cost_of(first.per_hour, kLeastPaidMs);
  if (*terms.budget >= least) return {};
  return fail(Errc::invalid_input,
              fmt::format("--budget {} does not pay for ten minutes: the cheapest, {}, costs {}",
                          cloud::dollars_text(*terms.budget), offer_name(first.offer),
                          cloud::dollars_text(least)),
              "raise --budget at least to this cost");
}

// Opens the ssh port of an existing rental to --allow-from, or else to this machine's present
// address.
Status let_in(rent::OnDemand& world, const RentRequest& request, cloud::Rental& rental) {
  if (request.options.allow_from) {
    LOCKSTEP_TRY_ASSIGN(const cloud::Terms terms, terms_of(request.options));
    rental.terms.own_address = false;
    return rent::open_to(world, rental, terms.allow_from);
  }
  if (rental.terms.open_to_all()) return {};
  const auto address = rent::own_address(world.web());
  const auto step = [&](const std::string& line) { tell_line(request.program, line); };
  const Status open = address ? rent::follow_address(world, rental, *address, step)
                              : Status(Failure(address.error()));
  LOCKSTEP_TRY(world.signals().check());
  if (!open) print_error(request.program, open.error());
  return {};
}

// Options cannot change an existing rental, except that --guard=here adds a guard. Warns about
// options without effect.
void tell_left_out(const RentRequest& request, cloud::Rental& rental) {
  const auto& guard = request.options.guard;
  if (guard == "here" && rental.terms.guard.empty()) rental.terms.guard = *guard;
  if (guard && *guard != rental.terms.guard)
    tell_line(
        request.program,
        fmt::format("--guard does not change rented machines: '{}' {}", rental.cluster,
                    rental.terms.guard.empty() ? "has none" : "is guarded: " + rental.terms.guard));
  if (request.options.spot && rental.wish.spot == cloud::SpotWish::no)
    tell_line(
        request.program,
        fmt::format("--spot does not change rented machines: '{}' is on demand", rental.cluster));
}

// Reports the result of the sweep. Returns an error if the user wants to stop.
Status tell_swept(rent::OnDemand& world, std::string_view program,
                  const Result<cloud::Reconciled>& swept) {
  LOCKSTEP_TRY(world.signals().check());
  if (swept)
    tell_sweep(program, *swept, world.web().now_ms());
  else
    tell_line(program, "nothing was swept: " + swept.error().message);
  return {};
}

struct Chosen {
  rent::Market market;
  cloud::Wish wish;
  cloud::Terms terms;
};

Result<std::optional<Chosen>> choose_machines(rent::OnDemand& world, const RentRequest& request) {
  Chosen chosen;
  if (request.standing) {
    chosen.wish = request.standing->wish;
    chosen.terms = request.standing->terms;
  } else {
    LOCKSTEP_TRY_ASSIGN(chosen.wish, wish_of(request.options, request.nodes));
    LOCKSTEP_TRY_ASSIGN(chosen.terms, terms_of(request.options));
    chosen.terms.guard = rent::guard_of_new(chosen.terms, chosen.wish, request.before != nullptr,
                                            request.options.will_watch);
  }
  chosen.wish.archs = rentable_archs();
  // Refuse before the providers are asked, which takes seconds.
  LOCKSTEP_TRY(check_consent(request.options, chosen.terms, chosen.wish));
  LOCKSTEP_TRY(world.providers().with_keys(chosen.wish.providers));
  if (!request.options.print) LOCKSTEP_TRY(agree_with_guard(world, chosen.wish, chosen.terms));
  // The sweep asks beside the question for offers, so the user waits for both at once.
  rent::Sweep sweep(world, rent::Sweep::When::always, waits_for(request.program, kForLeftovers));
  LOCKSTEP_TRY_ASSIGN(
      chosen.market,
      rent::ask_market(world, chosen.wish, true, waits_for(request.program, kForOffers), &sweep));
  auto swept = sweep.finish();
  const std::int64_t now = world.web().now_ms();
  LOCKSTEP_TRY_ASSIGN(const auto blocks, world.journal().blocks(now));
  const cloud::Choice choice =
      cloud::choose(chosen.market.catalog.offers, chosen.wish, blocks, now);
  // The error then names the providers that did not answer.
  if (swept && choice.candidates.empty()) swept->unheard.clear();
  LOCKSTEP_TRY(tell_swept(world, request.program, swept));
  if (choice.candidates.empty())
    return Failure(cloud::nothing_found(chosen.market.catalog, chosen.wish, choice));
  LOCKSTEP_TRY(check_budget(chosen.terms, choice.candidates.front()));
  // The provider may cap the lifetime. Show the granted time in the plan.
  const cloud::Traits& first =
      world.providers().find(choice.candidates.front().offer.provider)->traits();
  cloud::Terms granted = chosen.terms;
  granted.lifetime_s = cloud::lifetime_at(first, granted.lifetime_s);
  Plan plan = plan_of(choice, chosen.wish, granted, now);
  if (first.fixed_end) plan.fixed_by = first.title;
  const std::string note =
      world.providers()
          .find(first.name)
          ->keys_note(world.web(),
                      plan.ends_ms > 0 ? plan.ends_ms : now + granted.lifetime_s * 1000);
  if (!note.empty()) tell_line(request.program, note);
  if (request.options.print) {
    std::fputs(request.json ? (codec::print_json(plan_json(plan)) + "\n").c_str()
                            : plan_text(plan, now).c_str(),
               stdout);
    return std::optional<Chosen>();
  }
  std::fputs(plan_text(plan, now).c_str(), stderr);
  LOCKSTEP_TRY(consent(world, request.options));
  return std::optional<Chosen>(std::move(chosen));
}

}  // namespace

std::vector<std::string> rentable_archs() {
  std::vector<std::string> archs = ssh::served_machines();
  std::replace(archs.begin(), archs.end(), std::string("aarch64"), std::string("arm64"));
  return archs;
}

Status check_consent(const OnDemandOptions& options, const cloud::Terms& terms,
                     const cloud::Wish& wish) {
  if (options.print || options.yes || terms.budget || wish.max_price || at_terminal()) return {};
  return fail(Errc::invalid_input,
              "cannot ask for consent without a terminal, and nothing caps the cost",
              "give -y, --max-price or --budget, or see the plan with --print");
}

Status consent(rent::OnDemand& world, const OnDemandOptions& options) {
  if (options.yes || !at_terminal()) return {};
  return ask_consent(world, "rent it?", "nothing was rented");
}

bool at_terminal() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

Status ask_consent(rent::OnDemand& world, const std::string& question, const char* otherwise) {
  std::fputs((question + " [y/N] ").c_str(), stderr);
  if (says_yes(world.signals().fd())) return {};
  const int signal = world.signals().take();
  if (signal != 0) std::fputs("\n", stderr);
  return Failure(Error{Errc::canceled, otherwise, {}, signal});
}

Result<std::optional<cloud::Rental>> standing_rental(rent::OnDemand& world,
                                                     const std::string& cluster) {
  LOCKSTEP_TRY_ASSIGN(auto all, world.journal().standing());
  for (cloud::Rental& one : all)
    if (one.cluster == cluster) return std::optional<cloud::Rental>(std::move(one));
  return std::optional<cloud::Rental>();
}

cloud::RentRules rules_of(const std::optional<std::int64_t>& wait_s) {
  cloud::RentRules rules;
  if (wait_s)
    rules.wait = std::chrono::seconds(*wait_s);
  else
    rules.wait.reset();
  return rules;
}

void tell_line(std::string_view program, const std::string& text) {
  end_line();
  std::fputs(fmt::format("{}: {}\n", program, text).c_str(), stderr);
}

rent::Asking::Waiting waits_for(std::string_view program, std::string_view what) {
  return [program, what](const std::string& whom) {
    tell_line(program, fmt::format("waiting for {}: {}; Ctrl-C stops waiting", whom, what));
  };
}

void tell_sweep(std::string_view program, cloud::Reconciled swept, std::int64_t now_ms) {
  // The machines of a job that another host owns carry that host's installation, and are no news.
  const auto owned = jobs::rented::owned_among(jobs::rented::courses_here());
  std::erase_if(swept.foreign, [&](const cloud::Leftover& one) {
    return std::any_of(owned.begin(), owned.end(),
                       [&](const auto& job) { return job.rental == one.machine.intent; });
  });
  for (const std::string& line : sweep_lines(swept, now_ms))
    tell_line(program, line);
}

Result<Rented> rent_machines(rent::OnDemand& world, const RentRequest& request) {
  LOCKSTEP_TRY_ASSIGN(const auto wait_s, wait_seconds(request.options));
  LOCKSTEP_TRY(rent::check_name(request.cluster));
  LOCKSTEP_TRY(rent::check_not_owned_elsewhere(world.journal(), request.cluster));
  // With the lock, no other process changes this rental: the journal's record is current.
  if (!request.options.print) LOCKSTEP_TRY(world.locks().take(request.cluster));
  LOCKSTEP_TRY_ASSIGN(std::optional<cloud::Rental> rental,
                      rent::known_rental(world, request.cluster));
  rent::Market market;
  if (rental && request.hand_over)
    return fail(Errc::already_exists, fmt::format("'{}' is rented already", request.cluster),
                "give another --name");
  if (rental) {
    // Sweep before using the rental: a journal restored from an old copy does not know all
    // machines.
    rent::Sweep sweep(world, rent::Sweep::When::always, waits_for(request.program, kForLeftovers));
    LOCKSTEP_TRY(tell_swept(world, request.program, sweep.finish()));
    tell_left_out(request, *rental);
    if (request.options.print) {
      tell_line(request.program, fmt::format("'{}' is rented already: nothing more would be rented",
                                             rental->cluster));
      return Rented{};
    }
    tell_line(request.program,
              fmt::format("'{}' is rented already: using this rental", rental->cluster));
    LOCKSTEP_TRY(let_in(world, request, *rental));
  } else {
    LOCKSTEP_TRY_ASSIGN(std::optional<Chosen> chosen, choose_machines(world, request));
    if (!chosen) return Rented{};
    LOCKSTEP_TRY_ASSIGN(rental,
                        rent::new_rental(world, request.cluster, chosen->wish, chosen->terms));
    if (request.hand_over) rental->id = *request.hand_over;
    market = std::move(chosen->market);
  }
  // Start the guard before any request: machines without a guard must not be rented.
  io::Fd guard;
  if (rent::wants_guard(*rental)) {
    LOCKSTEP_TRY_ASSIGN(guard, rent::need_guard(world));
  }
  if (request.before) LOCKSTEP_TRY(request.before(*rental));
  if (request.hand_over) {
    // From here on the course rents: it finds the rental in the journal.
    LOCKSTEP_TRY(world.journal().keep(*rental));
    return Rented{.rental = std::move(rental)};
  }
  const auto line = [&](const std::string& text) { tell_line(request.program, text); };
  const rent::RentTalk talk{.event =
                                [&](const cloud::RentEvent& event) {
                                  line(event_text(event));
                                  if (request.on_event) request.on_event(event);
                                },
                            .step =
                                [&](const rent::ContactStep& step) {
                                  line(step.text);
                                  if (request.on_step) request.on_step(step);
                                },
                            .line = line};
  LOCKSTEP_TRY(rent::rent_or_undo(world, *rental, std::move(market), rules_of(wait_s), talk,
                                  request.before == nullptr));
  return Rented{.rental = std::move(rental)};
}

Status give_machines_back(rent::OnDemand& world, std::string_view program, cloud::Rental& rental) {
  const Status back = rent::give_back(
      world, rental, [&](const cloud::RentEvent& event) { tell_line(program, event_text(event)); });
  const std::string cost = cloud::dollars_text(cloud::cost_so_far(rental, world.now_ms()));
  if (back) {
    tell_line(program, fmt::format("'{}' is terminated; it cost {} USD", rental.cluster, cost));
    if (world.guards().word_of(rental) == rent::GuardHosts::Word::silent)
      tell_line(program,
                fmt::format("the guard notices by itself: {}", world.guards().trouble_of(rental)));
    return {};
  }
  Error error = back.error();
  if (rental.settled())
    error.message += fmt::format("; the machines are gone anyway, and cost {} USD", cost);
  else if (rental.ends_ms > 0)
    error.message += "; " + rent::end_words(world, rental);
  return Failure(std::move(error));
}

}  // namespace lockstep::cli
