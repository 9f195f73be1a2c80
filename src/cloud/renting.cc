// Chooses the offers to try, their order, and the time to wait for capacity.
#include "cloud/renting.h"

#include "base/backoff.h"
#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace lockstep::cloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string tried_key(const Offer& offer) {
  return fmt::format("{}|{}|{}|{}|{}", offer.provider, offer.region, offer.zone, offer.type,
                     offer.spot);
}

bool says_nothing(const Catalog& catalog) {
  return std::any_of(catalog.silent.begin(), catalog.silent.end(),
                     [](const NoAnswer& silence) { return !silence.no_keys; });
}

std::string what_is_left(const Rental& rental) {
  std::string words;
  for (const Attempt& attempt : rental.attempts) {
    if (!attempt.open()) continue;
    words += words.empty() ? "" : ", ";
    words += offer_words(attempt.offer);
    for (const Held& held : attempt.machines)
      if (held.gone_ms == 0) words += " " + held.machine.id;
  }
  return words;
}

// Returns whether an earlier command has connected to every machine.
bool has_met_all(const Rental& rental) {
  const auto live = rental.live();
  return std::all_of(live.begin(), live.end(),
                     [](const Held* held) { return !held->host_key.empty(); });
}

// Returns the end of a lease of this offer (Unix time, 0: never). Fails if the lease would be too
// short to pay for.
Result<std::int64_t> lease_of(const RentParts& parts, const Rental& rental,
                              const Candidate& candidate) {
  const std::int64_t now = parts.web.now_ms();
  const Micros spent = cost_so_far(rental, now);
  Terms terms = rental.terms;
  if (const Provider* provider = parts.provider(candidate.offer.provider); provider != nullptr)
    terms.lifetime_s = lifetime_at(provider->traits(), terms.lifetime_s);
  const auto end = lease_end(terms, candidate.per_hour, spent, began_ms(rental, now), now);
  if (!end) return 0;
  constexpr std::int64_t kLeastMs = 60'000;
  constexpr std::int64_t kLeastPaidMs = 10LL * 60'000;
  if (rental.terms.budget) {
    const auto paid = lease_end({.budget = rental.terms.budget}, candidate.per_hour, spent, 0, now);
    if (*paid - now < kLeastPaidMs)
      return fail(
          Errc::invalid_input,
          fmt::format("{} costs {} an hour: what is left of --budget {} pays for {} s of it",
                      offer_words(candidate.offer), dollars_text(candidate.per_hour),
                      dollars_text(*rental.terms.budget), (*paid - now) / 1000),
          "10 minutes must be paid for: raise --budget");
  }
  if (*end - now < kLeastMs)
    return fail(Errc::timeout,
                fmt::format("the lifetime of {} s is over", rental.terms.lifetime_s));
  return *end;
}

}  // namespace

Renting::Renting(RentParts parts, RentRules rules)
    : parts_(std::move(parts)),
      rules_(rules),
      launches_(parts_, rules_),
      machines_(parts_, rules_),
      memory_(parts_),
      gang_(parts_, rules_, launches_, machines_, memory_) {}

// --- one offer

// Decides whether to keep the machines of an offer. Terminates rejected machines, and machines that
// never ran, before the next launch: a gang is all or none.
Tried Renting::judged(Rental& rental, Tried tried, const Offer& offer, const Judge& judge) {
  if (tried.what == Tried::What::got) {
    Verdict verdict = judge(rental);
    if (Status going = rest(parts_, rental, milliseconds(0)); !going)
      verdict = {.kind = Verdict::Kind::stop, .error = std::move(going).error()};
    if (verdict.kind == Verdict::Kind::good) return tried;
    memory_.note(verdict.error);
    tried = {.what = Tried::What::stop, .error = verdict.error};
    if (verdict.kind == Verdict::Kind::bad) tried = rejected(rental, offer, verdict.error);
  }
  const std::string why =
      tried.error.message.empty() ? memory_.last().message : tried.error.message;
  if (const Status ended = machines_.end_all(rental, why); !ended) {
    const bool first = tried.what == Tried::What::next || tried.error.message.empty();
    tried.what = Tried::What::stop;
    if (first)
      tried.error = ended.error();
    else
      tried.error.message += "; then " + ended.error().message;
  }
  return tried;
}

// Rejects machines after a bad verdict. If a machine is already gone, that explains the verdict.
// Otherwise remembers the offer as bad.
Tried Renting::rejected(Rental& rental, const Offer& offer, const Error& why) {
  if (auto lost = gang_.lost_one(rental)) return *lost;
  tell(parts_, RentEvent::Kind::rejected, &offer, why.message);
  if (Status kept = memory_.learn(offer, Block::Kind::unhealthy, why.message); !kept)
    return stopped_by(kept.error());
  return {.what = Tried::What::next, .error = why};
}

Tried Renting::try_offer(Rental& rental, const Candidate& candidate, const Judge& judge) {
  const auto end = lease_of(parts_, rental, candidate);
  if (!end) {
    memory_.note(end.error());
    return {.what = Tried::What::next, .error = end.error()};
  }
  // Set the end before the launch, which tells the provider or the machine when to terminate it.
  rental.ends_ms = *end;
  Tried tried = gang_.launch(rental, candidate);
  if (tried.what == Tried::What::got) tried = gang_.bring_up(rental);
  return judged(rental, std::move(tried), candidate.offer, judge);
}

// --- all offers

// Settles unanswered launches of an earlier client, and updates machines that run.
Status Renting::settle_old(Rental& rental) {
  for (std::size_t at = 0; at < rental.attempts.size(); ++at) {
    const Attempt& attempt = rental.attempts[at];
    if (attempt.state != Attempt::State::asked && attempt.state != Attempt::State::unknown)
      continue;
    Provider* provider = parts_.provider(attempt.offer.provider);
    if (provider == nullptr) return without_keys(attempt.offer.provider, "looked for");
    LaunchOutcome outcome;
    LOCKSTEP_TRY(launches_.resolve(rental, at, *provider, parts_.web, outcome));
  }
  return machines_.look(rental);
}

// Takes up the gang of an earlier command. Terminates an incomplete gang, and a gang whose lease is
// over.
Status Renting::take_up(Rental& rental, const Judge& judge) {
  if (rental.ends_ms > 0 && parts_.web.now_ms() >= rental.ends_ms)
    return machines_.end_all(rental, "its time is over");
  std::set<int> nodes;
  const Offer* offer = nullptr;
  for (const Attempt& attempt : rental.attempts)
    if (attempt.state == Attempt::State::answered || attempt.state == Attempt::State::running) {
      offer = &attempt.offer;
      for (const Held& held : attempt.machines)
        if (held.gone_ms == 0 && held.node != kSurplus) nodes.insert(held.node);
    }
  if (offer == nullptr || static_cast<int>(nodes.size()) < rental.wish.nodes)
    return machines_.end_all(rental, "a part of a gang");
  const Offer of_gang = *offer;
  const bool met = has_met_all(rental);
  Tried tried = gang_.bring_up(rental);
  if (met && tried.what == Tried::What::got) {
    Verdict verdict = judge(rental);
    if (Status going = rest(parts_, rental, milliseconds(0)); !going) verdict.error = going.error();
    if (verdict.error.message.empty()) return {};
    tried = {.what = Tried::What::stop, .error = std::move(verdict.error)};
  }
  // A job may be running on a gang that was in use. Never terminate the gang because this command
  // cannot reach it or was stopped.
  if (met && tried.what == Tried::What::stop &&
      !parts_.journal.end_is_asked(rental.id).value_or(false))
    return Failure(std::move(tried.error));
  tried = judged(rental, std::move(tried), of_gang, judge);
  if (tried.what == Tried::What::stop) return Failure(std::move(tried.error));
  return {};
}

// Drops offers beyond the budget. If no offer is left, waiting is pointless.
void Renting::drop_unpaid(const Rental& rental, std::vector<Candidate>& candidates) {
  if (candidates.empty()) return;
  std::erase_if(candidates, [&](const Candidate& one) {
    const auto end = lease_of(parts_, rental, one);
    if (!end) memory_.note(end.error());
    return !end;
  });
  hope_ = hope_ && !candidates.empty();
}

// Tries all current offers once. Returns whether a gang runs.
Result<bool> Renting::pass(Rental& rental, const AskOffers& offers, const Judge& judge,
                           bool first) {
  const Catalog catalog = offers();
  LOCKSTEP_TRY_ASSIGN(const auto known, parts_.journal.blocks(parts_.web.now_ms()));
  Choice choice = choose(catalog.offers, rental.wish, known, parts_.web.now_ms());
  std::erase_if(choice.candidates, [&](const Candidate& one) { return memory_.is_out(one.offer); });
  // A silent provider may answer later, so keep waiting. In the first pass the silence of all
  // providers is an error.
  hope_ = !choice.candidates.empty() || (!first && says_nothing(catalog));
  if (!hope_ && memory_.last().message.empty())
    memory_.note(nothing_found(catalog, rental.wish, choice));
  drop_unpaid(rental, choice.candidates);
  std::set<std::string> tried;
  const std::vector<Candidate> all = choice.candidates;
  std::vector<Candidate>& left = choice.candidates;
  while (!left.empty()) {
    const Candidate candidate = left.front();
    left.erase(left.begin());
    const Offer& offer = candidate.offer;
    if (memory_.is_out(offer) || !tried.insert(tried_key(offer)).second) continue;
    // The first pass also tries offers that an earlier command found blocked. Such offers come
    // last.
    const std::int64_t now = parts_.web.now_ms();
    const auto stops = [&](const Block& block) { return blocks(block, offer, now); };
    if (std::any_of(memory_.learned().begin(), memory_.learned().end(), stops)) continue;
    if (!first && std::any_of(known.begin(), known.end(), stops)) continue;
    LOCKSTEP_TRY(rest(parts_, rental, milliseconds(0)));  // fails if the user stopped this command
    Tried done = try_offer(rental, candidate, judge);
    if (done.what == Tried::What::got) return true;
    if (done.what == Tried::What::stop) return Failure(std::move(done.error));
    // Try zones first that the refusal named as having capacity.
    std::stable_partition(left.begin(), left.end(), [&](const Candidate& other) {
      return other.offer.provider == offer.provider && other.offer.type == offer.type &&
             std::find(done.zones_to_try.begin(), done.zones_to_try.end(), other.offer.zone) !=
                 done.zones_to_try.end();
    });
  }
  // Waiting does not help if every offer is of a provider that refused this account.
  if (!all.empty() && std::all_of(all.begin(), all.end(),
                                  [&](const Candidate& one) { return memory_.is_out(one.offer); }))
    hope_ = says_nothing(catalog);
  LOCKSTEP_TRY_ASSIGN(again_ms_, asked_again_ms(all));
  return false;
}

// Returns the time at which the first of these offers may be asked again (Unix time). A refusal
// blocks an offer for a while.
Result<std::int64_t> Renting::asked_again_ms(const std::vector<Candidate>& all) const {
  const std::int64_t now = parts_.web.now_ms();
  LOCKSTEP_TRY_ASSIGN(auto known, parts_.journal.blocks(now));
  known.insert(known.end(), memory_.learned().begin(), memory_.learned().end());
  std::int64_t soonest = all.empty() ? now : std::numeric_limits<std::int64_t>::max();
  for (const Candidate& one : all) {
    std::int64_t at = now;
    for (const Block& block : known)
      if (blocks(block, one.offer, now)) at = std::max(at, block.until_ms);
    soonest = std::min(soonest, at);
  }
  return soonest;
}

// Returns the message before a pause: which offers are asked after it, and which only later.
std::string Renting::pause_words(milliseconds pause, std::int64_t until_ms) const {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(pause).count();
  const std::int64_t now = parts_.web.now_ms();
  if (again_ms_ <= now + pause.count())
    return fmt::format("asked again in {} s; the last answer: {}", seconds, memory_.last().message);
  const std::int64_t minutes = (again_ms_ - now + 59'999) / 60'000;
  return fmt::format(
      "prices and stock are checked again in {} s, refused offers {}; the last answer: {}", seconds,
      again_ms_ > until_ms ? "only after --wait is over" : fmt::format("in {} min", minutes),
      memory_.last().message);
}

Status Renting::rent(Rental& rental, const AskOffers& offers, const Judge& judge) {
  if (!rental.wanted)
    return fail(Errc::unavailable,
                fmt::format("what was rented for '{}' is being terminated", rental.cluster),
                fmt::format("`lockstep down {}` finishes that", rental.cluster));
  Status done = course(rental, offers, judge);
  if (done) return done;
  Error error = std::move(done).error();
  // Exit code 2 for bad input promises that nothing was started. Report another error once a launch
  // was attempted.
  if (error.code == Errc::invalid_input && !rental.attempts.empty()) error.code = Errc::unavailable;
  if (rental.settled()) return Failure(std::move(error));
  error.hint = fmt::format("there may still be {}: `lockstep down {}` ends it",
                           what_is_left(rental), rental.cluster);
  return Failure(std::move(error));
}

Status Renting::course(Rental& rental, const AskOffers& offers, const Judge& judge) {
  LOCKSTEP_TRY(parts_.journal.keep(rental));
  // An unanswered launch may have made machines. Settle it before any other launch, or both would
  // be billed.
  LOCKSTEP_TRY(settle_old(rental));
  if (!rental.settled()) {
    LOCKSTEP_TRY(take_up(rental, judge));
    if (is_whole(rental)) return {};
  }
  if (rules_.wait && *rules_.wait < milliseconds(0))
    return fail(Errc::timeout, "--wait is over, and no offer could be rented");
  const std::int64_t until_ms = rules_.wait ? parts_.web.now_ms() + rules_.wait->count()
                                            : std::numeric_limits<std::int64_t>::max();
  Backoff backoff({.first = seconds(15), .longest = seconds(300)});
  for (bool first = true;; first = false) {
    LOCKSTEP_TRY_ASSIGN(const bool got, pass(rental, offers, judge, first));
    if (got) return {};
    if (!hope_) return Failure(memory_.last());
    milliseconds pause = backoff.next();
    if (rules_.wait) {
      const milliseconds left(until_ms - parts_.web.now_ms());
      if (left <= milliseconds(0)) return Failure(memory_.last());
      pause = std::min(pause, left);
    }
    tell(parts_, RentEvent::Kind::pausing, nullptr, pause_words(pause, until_ms));
    LOCKSTEP_TRY(rest(parts_, rental, pause));
  }
}

}  // namespace lockstep::cloud
