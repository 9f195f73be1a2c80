// lockstep cloud selftest: takes a small machine of a provider from offer to bill, and prints a
// report for sharing. Names of accounts, keys and addresses go to stderr only.
#include "cli/cloud_selftest.h"

#include "base/clock_ms.h"
#include "base/id.h"
#include "base/text.h"
#include "cli/on_demand.h"
#include "cli/on_demand_words.h"
#include "cli/places.h"
#include "cli/rent_tables.h"
#include "cloud/machine_table.h"
#include "proc/signals.h"
#include "rent/gang.h"
#include "rent/market.h"
#include "rent/rented_host.h"
#include "rent/sweep.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

using cloud::RentEvent;

constexpr std::int64_t kSelftestLifetime = 15LL * 60;  // seconds
constexpr std::int64_t kSelftestPaidMs = 30LL * 60'000;
constexpr std::int64_t kSelftestEndIn = 20;  // seconds
constexpr std::int64_t kSelftestPatience = 5LL * 60;
constexpr std::int64_t kMostSelftestPatience = 12LL * 60;
constexpr std::chrono::milliseconds kSelftestLook{2000};

struct SelftestWish {
  cloud::Wish wish;
  cloud::Terms terms;
  std::int64_t patience_s = kSelftestPatience;
  bool yes = false;
};

class SelfTest {
 public:
  SelfTest(rent::OnDemand& world, const cloud::Traits& traits, SelftestWish wanted)
      : world_(world), traits_(traits), wanted_(std::move(wanted)) {}

  Result<ExitCode> run();

 private:
  enum class Mark { ok, failed, note };

  void begin() { since_ms_ = unix_ms(); }
  void report(Mark mark, const std::string& what);
  void fail_with(const std::string& what, const Error& error);
  void on_event(const RentEvent& event);
  void on_step(const rent::ContactStep& step);
  void report_health();
  Status find_cheapest();
  Status rent();
  void report_refusals();
  Status end_by_itself();
  Status watch_end();
  void give_back();
  int sweep();
  ExitCode verdict(int signal);

  static constexpr std::string_view kProgram = "lockstep cloud selftest";

  rent::OnDemand& world_;
  const cloud::Traits& traits_;
  SelftestWish wanted_;
  cloud::Rental rental_;
  std::int64_t since_ms_ = 0;  // start of the current step
  bool own_host_key_ = false;
  bool failed_ = false;
};

void SelfTest::report(Mark mark, const std::string& what) {
  const char* words[] = {"ok", "FAILED", "note"};
  failed_ = failed_ || mark == Mark::failed;
  const std::int64_t took = std::max<std::int64_t>(unix_ms() - since_ms_, 0) / 100;
  const std::string seconds =
      mark == Mark::note ? "" : fmt::format("{}.{} s", took / 10, took % 10);
  std::puts(fmt::format("{:<6} {:>8}  {}", words[static_cast<int>(mark)], seconds, what).c_str());
  // stdout may be a pipe: show each line at once.
  std::fflush(stdout);
  if (mark != Mark::note) begin();
}

// The report has the error. The reason may contain private names, so print the reason to stderr
// only.
void SelfTest::fail_with(const std::string& what, const Error& error) {
  report(Mark::failed, what);
  print_error(kProgram, error);
}

void SelfTest::on_event(const RentEvent& event) {
  switch (event.kind) {
    case RentEvent::Kind::asking:
      return begin();
    case RentEvent::Kind::booting:
      return report(Mark::ok, "the launch was accepted");
    case RentEvent::Kind::running:
      return report(Mark::ok, "the provider says that the machine runs");
    case RentEvent::Kind::no_answer:
      return report(Mark::note, "no answer to a launch");
    case RentEvent::Kind::rejected:
      return report(Mark::failed, "a machine was unusable (stderr says why)");
    case RentEvent::Kind::not_ended:
      return report(Mark::failed, "the provider refuses to end a machine (stderr says why)");
    case RentEvent::Kind::refused:
    case RentEvent::Kind::ending:
    case RentEvent::Kind::pausing:
      return;
  }
}

// The steps of first contact, from rent/rented_host.cc.
void SelfTest::on_step(const rent::ContactStep& step) {
  switch (step.kind) {
    case rent::ContactStep::Kind::logs_in:
      return report(Mark::ok, "sshd answers");
    case rent::ContactStep::Kind::own_host_key:
      own_host_key_ = true;
      return;
    case rent::ContactStep::Kind::checked:
      return report(Mark::ok,
                    own_host_key_
                        ? "the image created a host key, the provider knows the same key, and "
                          "the login works"
                        : "the host key is the expected one, and the login works");
    case rent::ContactStep::Kind::gets_lease:
      return report_health();
    case rent::ContactStep::Kind::other:
      return;
  }
}

void SelfTest::report_health() {
  const bool gpus = !wanted_.wish.gpu.none;
  report(Mark::ok,
         fmt::format("the machine is healthy: {}disk, clock, line", gpus ? "GPUs, driver, " : ""));
  if (!gpus) report(Mark::note, "the machine has no GPUs: driver and GPUs were not checked");
}

Status SelfTest::find_cheapest() {
  begin();
  LOCKSTEP_TRY_ASSIGN(const auto market, rent::ask_market(world_, wanted_.wish, true,
                                                          waits_for(kProgram, kForOffers)));
  const std::int64_t now = world_.web().now_ms();
  LOCKSTEP_TRY_ASSIGN(const auto blocks, world_.journal().blocks(now));
  const cloud::Choice choice = cloud::choose(market.catalog.offers, wanted_.wish, blocks, now);
  if (choice.candidates.empty())
    return Failure(cloud::nothing_found(market.catalog, wanted_.wish, choice));
  const cloud::Candidate& first = choice.candidates.front();
  wanted_.wish.max_price =
      first.per_hour * 2;  // the limit for later offers, if the provider refuses the first
  wanted_.terms.budget = cloud::cost_of(first.per_hour, kSelftestPaidMs);
  report(Mark::ok,
         fmt::format("cheapest of {} offers: {} with {}, {} USD an hour, price {}",
                     choice.candidates.size(), offer_name(first.offer), gpus_words(first.offer),
                     cloud::dollars_text(first.per_hour), price_words(first.offer.price, now)));
  return {};
}

// Codes of refusals contain no data of the account, so the report may show the codes.
void SelfTest::report_refusals() {
  constexpr std::int64_t kDayMs = 86'400'000;  // the rental was closed just now
  const auto all = world_.journal().since(world_.web().now_ms() - kDayMs);
  if (!all) return;
  for (const cloud::Rental& one : *all)
    if (one.cluster == rental_.cluster)
      for (const cloud::Attempt& attempt : one.attempts)
        if (attempt.state == cloud::Attempt::State::refused)
          report(Mark::note, fmt::format("refused: {}: {}", offer_name(attempt.offer),
                                         printable(attempt.code, 80)));
}

Status SelfTest::rent() {
  RentRequest request{.program = kProgram,
                      .cluster = rental_.cluster,
                      .options = {},
                      .nodes = {},
                      .standing = cloud::Rental(),
                      .on_event = [this](const RentEvent& event) { on_event(event); },
                      .on_step = [this](const rent::ContactStep& step) { on_step(step); }};
  request.standing->wish = wanted_.wish;
  request.standing->terms = wanted_.terms;
  request.options.yes = wanted_.yes;
  // Report a refusal at once instead of waiting for stock.
  request.options.wait = "0";
  auto rented = rent_machines(world_, request);
  if (!rented) {
    report_refusals();
    return Failure(rented.error());
  }
  rental_ = std::move(*rented->rental);
  report_refusals();
  report(Mark::ok, "its lease runs");
  return {};
}

// The provider's list decides, not the machine's own answer.
Status SelfTest::watch_end() {
  const std::int64_t last = unix_ms() + (kSelftestEndIn + wanted_.patience_s) * 1000;
  while (true) {
    Status looked = rent::look(world_, rental_);
    if (!looked && looked.error().code == Errc::canceled) return looked;
    if (looked && rental_.live().empty()) return {};
    if (unix_ms() >= last)
      return fail(Errc::timeout,
                  fmt::format("the provider still lists the machine {} s after its end",
                              wanted_.patience_s));
    LOCKSTEP_TRY(world_.web().pause(kSelftestLook));
  }
}

Status SelfTest::end_by_itself() {
  if (rental_.attempts.back().offer.ending == cloud::Ending::with_guard) {
    report(Mark::note,
           "such machines cannot end their own bill: this command terminates the machine");
    return {};
  }
  LOCKSTEP_TRY_ASSIGN(const auto places, places_of(rental_.cluster, {}));
  // Bring the end close, so that the test sees the machine end by itself.
  const std::int64_t end = unix_ms() + kSelftestEndIn * 1000;
  LOCKSTEP_TRY_ASSIGN(const auto answers, rent::keep_leases(places, end));
  for (const rent::LeaseAnswer& answer : answers)
    if (!answer.error.empty()) return fail(Errc::unavailable, answer.error);
  report(Mark::ok, fmt::format("the lease ends in {} s now", kSelftestEndIn));
  LOCKSTEP_TRY(watch_end());
  report(Mark::ok, "the machine ended itself, and the provider lists it as gone");
  return {};
}

void SelfTest::give_back() {
  begin();
  const Status back = give_machines_back(world_, kProgram, rental_);
  if (back)
    report(Mark::ok, "terminated: the provider lists nothing of the machine");
  else
    fail_with("the machine may still be there: lockstep down --orphans", back.error());
  world_.locks().release(rental_.cluster);
}

// Returns the signal with which the user stopped the sweep, or 0.
int SelfTest::sweep() {
  begin();
  const auto swept = rent::sweep_now(world_, waits_for(kProgram, kForLeftovers));
  if (!swept) {
    if (swept.error().code == Errc::canceled) return swept.error().sys;
    fail_with("the sweep found no answer", swept.error());
    return 0;
  }
  tell_sweep(kProgram, *swept, world_.web().now_ms());
  const auto ours = [&](const auto& one) { return one.provider == traits_.name; };
  const auto ended = std::count_if(swept->ended.begin(), swept->ended.end(), ours);
  const auto unheard = std::count_if(swept->unheard.begin(), swept->unheard.end(), ours);
  report(ended + unheard == 0 ? Mark::ok : Mark::failed,
         fmt::format("the sweep found {} unwanted machines, and {} places without an answer", ended,
                     unheard));
  return 0;
}

ExitCode SelfTest::verdict(int signal) {
  begin();
  report(Mark::note, fmt::format("the bill: {} USD", cloud::dollars_text(cloud::cost_so_far(
                                                         rental_, world_.now_ms()))));
  std::puts(signal != 0 ? "result: stopped by the user"
                        : fmt::format("result: {}", failed_ ? "FAILED" : "ok").c_str());
  if (signal != 0) return stopped_by(signal);
  return failed_ ? ExitCode::failed : ExitCode::ok;
}

Result<ExitCode> SelfTest::run() {
  std::puts(fmt::format("selftest of {}", traits_.title).c_str());
  LOCKSTEP_TRY(find_cheapest());
  // A fresh name, because an earlier test may have left a rental.
  rental_.cluster = "selftest-" + to_lower(random_suffix(6));
  if (const Status rented = rent(); !rented) {
    // The rental is terminated already, or the error names the rest.
    if (rented.error().code != Errc::canceled) report(Mark::failed, "nothing was rented");
    return Failure(rented.error());
  }
  const Status ended = end_by_itself();
  int signal = world_.signals().take();
  const bool canceled = !ended && ended.error().code == Errc::canceled;
  if (!ended && !canceled) fail_with("the machine has not ended itself", ended.error());
  give_back();
  if (signal == 0 && !canceled) signal = sweep();
  return verdict(canceled && signal == 0 ? SIGINT : signal);
}

// Everything except GPUs can be tested on a machine of a cent an hour.
void take_type(const std::optional<std::string>& given, const std::string& provider,
               cloud::Wish& wish) {
  const cloud::MachineType* plain = cloud::plain_machine(provider);
  if (given ? *given == "any" : plain == nullptr) return;
  wish.types = {given.value_or(plain == nullptr ? "" : plain->type)};
  wish.gpu.none = plain != nullptr && wish.types.front() == plain->type;
}

Result<SelftestWish> selftest_wish(const Parsed& parsed) {
  CloudSelftestOptions options;
  fill(cloud_selftest_table(), parsed, options);
  if (parsed.names.size() != 1)
    return fail(Errc::invalid_input,
                parsed.names.empty()
                    ? std::string("no provider is named")
                    : fmt::format("'{}' is one word too many", printable(parsed.names[1])),
                "write lockstep cloud selftest aws");
  // Every test costs money, so a budget alone is no consent here.
  if (!options.yes && (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1))
    return fail(Errc::invalid_input,
                "cannot ask for consent without a terminal, and a machine would be rented",
                "give -y");
  SelftestWish wanted{.wish = {}, .terms = {}, .yes = options.yes};
  wanted.wish.providers = {parsed.names.front()};
  wanted.wish.guarded = true;  // this command terminates the machine
  take_type(options.type, parsed.names.front(), wanted.wish);
  wanted.terms.lifetime_s = kSelftestLifetime;
  LOCKSTEP_TRY_ASSIGN(wanted.terms.allow_from, networks_of(options.allow_from));
  if (options.patience) {
    LOCKSTEP_TRY_ASSIGN(wanted.patience_s, parse_time("patience", *options.patience));
    if (wanted.patience_s > kMostSelftestPatience)
      return fail(Errc::invalid_input,
                  fmt::format("--patience {} is too long: at most {} min",
                              printable(*options.patience, 40), kMostSelftestPatience / 60));
  }
  return wanted;
}

Result<ExitCode> test_provider(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(SelftestWish wanted, selftest_wish(call.parsed));
  LOCKSTEP_TRY_ASSIGN(const auto world, rent::OnDemand::open());
  LOCKSTEP_TRY_ASSIGN(const auto providers, world->providers().with_keys(wanted.wish.providers));
  return SelfTest(*world, providers.front()->traits(), std::move(wanted)).run();
}

}  // namespace

Result<ExitCode> cloud_selftest_command(const Call& call) {
  return test_provider(call);
}

}  // namespace lockstep::cli
