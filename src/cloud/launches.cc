#include "cloud/launches.h"

#include "base/backoff.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::cloud {
namespace {

using std::chrono::seconds;

LaunchSpec spec_of(const RentParts& parts, const Rental& rental, const Attempt& attempt) {
  LaunchSpec spec{.intent = rental.id,
                  .owner = rental.owner,
                  .cluster = rental.cluster,
                  .attempt = attempt.number,
                  .node = attempt.node,
                  .count = attempt.count,
                  .offer = attempt.offer,
                  .disk_gb = rental.wish.disk_gb,
                  .image = rental.terms.image,
                  .user_data = rental.user_data,
                  .public_key = rental.public_key,
                  .allow_from = rental.terms.allowed(attempt.offer.ending),
                  .lifetime_s = rental.terms.lifetime_s,
                  .wanted_ms = rental.created_ms,
                  .ends_ms = rental.ends_ms};
  const Provider* provider = parts.provider(attempt.offer.provider);
  if (provider != nullptr && provider->traits().container) spec.user_data = rental.start_script;
  if (rental.ends_ms > 0) {
    const std::int64_t left = (rental.ends_ms - parts.web.now_ms()) / 1000;
    // The rental's end was set before this launch, and earlier attempts have used some of the time.
    spec.lifetime_s = std::max<std::int64_t>(left, 60);
  }
  if (rental.wish.max_price) {
    // --max-price limits the whole bill. A spot bid covers the machine alone, without disk and
    // address.
    const Offer& offer = attempt.offer;
    const Micros beside = offer.per_machine_hour(rental.wish.disk_gb) - offer.price.per_hour;
    const Micros each = *rental.wish.max_price / std::max(rental.wish.nodes, 1);
    spec.max_spot = std::max<Micros>(each - beside, 1);
  }
  return spec;
}

}  // namespace

Result<LaunchOutcome> Launches::launch(Rental& rental, Attempt attempt, Provider& provider) {
  // prepare() may change networks, keys or rules of the account, under the account's lock. The
  // launch needs no lock.
  auto mine = parts_.hold_account ? parts_.hold_account() : Result<io::Fd>();
  if (!mine) return Failure(std::move(mine).error());
  auto call = provider.prepare(parts_.web, spec_of(parts_, rental, attempt));
  mine->reset();
  if (!call) return std::move(call).error();
  attempt.call = *std::move(call);
  // Journal first, then the guard, then the launch. Each of the two can terminate the machine if
  // this process dies.
  LOCKSTEP_TRY(note_call(rental, std::move(attempt)));
  const std::size_t at = rental.attempts.size() - 1;
  const Offer offer = rental.attempts[at].offer;
  tell(parts_, RentEvent::Kind::asking, &offer);
  LaunchOutcome outcome = provider.launch(parts_.web, spec_of(parts_, rental, rental.attempts[at]),
                                          rental.attempts[at].call);
  LOCKSTEP_TRY(settle(rental, at, outcome));
  if (outcome.kind == LaunchOutcome::Kind::unknown) {
    tell(parts_, RentEvent::Kind::no_answer, &offer, outcome.message);
    LOCKSTEP_TRY(resolve(rental, at, provider, parts_.web, outcome));
  }
  // resolve() reports a launch that made nothing as a refusal without a code.
  if (outcome.kind == LaunchOutcome::Kind::refused && outcome.code.empty()) {
    outcome.refusal = Refusal::next_zone;
    outcome.message = "the launch was not answered, and made nothing";
  }
  return outcome;
}

// Puts the attempt into the journal before any byte of its launch leaves. After a crash another
// process then settles the launch.
Status Launches::note_call(Rental& rental, Attempt attempt) {
  attempt.asked_ms = parts_.web.now_ms();
  rental.attempts.push_back(std::move(attempt));
  if (Status kept = parts_.journal.keep(rental); !kept) {
    rental.attempts.pop_back();
    return Failure(std::move(kept).error().within("nothing is rented, the journal is not kept"));
  }
  Status going = parts_.before_call ? parts_.before_call(rental) : Status();
  if (going) return going;
  rental.attempts.pop_back();
  (void)parts_.journal.keep(rental);
  return going;
}

Status Launches::settle(Rental& rental, std::size_t at, const LaunchOutcome& outcome) {
  Attempt& attempt = rental.attempts[at];
  switch (outcome.kind) {
    case LaunchOutcome::Kind::answered:
      attempt.state = Attempt::State::answered;
      attempt.answered_ms = parts_.web.now_ms();
      for (std::size_t i = 0; i < outcome.ids.size(); ++i)
        if (!holds(rental, outcome.ids[i]))
          attempt.machines.push_back(
              {.machine = {.id = outcome.ids[i],
                           .region = attempt.offer.region,
                           .zone = attempt.offer.zone,
                           .type = attempt.offer.type,
                           .intent = rental.id},
               .node = attempt.node + static_cast<int>(i),
               .since_ms = outcome.launched_ms > 0 ? outcome.launched_ms : attempt.asked_ms});
      break;
    case LaunchOutcome::Kind::refused:
      attempt.state = Attempt::State::refused;
      attempt.code = outcome.code;
      attempt.message = outcome.message;
      attempt.ended_ms = parts_.web.now_ms();
      attempt.call = {};
      break;
    case LaunchOutcome::Kind::unknown:
      attempt.state = Attempt::State::unknown;
      attempt.message = outcome.message;
      break;
  }
  return parts_.journal.keep(rental);
}

// Terminates all machines that the provider lists for the rental, without waiting for a lost
// answer.
void Launches::end_listed(const Rental& rental, const Offer& offer, Provider& provider) {
  auto listing = provider.list(
      parts_.ending, {.regions = {offer.region}, .intent = rental.id, .owner = rental.owner});
  if (!listing) return;
  std::erase_if(listing->machines, [&](const Machine& machine) {
    return machine.intent != rental.id || machine.state == Machine::State::gone ||
           machine.state == Machine::State::ending;
  });
  if (!listing->machines.empty()) (void)provider.end(parts_.ending, listing->machines);
}

Status Launches::resolve(Rental& rental, std::size_t at, Provider& provider, Web& web,
                         LaunchOutcome& outcome) {
  const std::int64_t until = web.now_ms() + rules_.unknown_patience.count();
  const bool ends = &web == &parts_.ending;
  Backoff backoff({.first = seconds(2), .longest = seconds(10)});
  while (true) {
    Attempt& attempt = rental.attempts[at];
    // Only for providers that recognize the launch's token. Others look for machines by name, and
    // would neither find nor count machines terminated here.
    if (ends && provider.traits().resends_token) end_listed(rental, attempt.offer, provider);
    outcome =
        provider.resolve(web, spec_of(parts_, rental, attempt), attempt.call, attempt.asked_ms);
    if (outcome.kind != LaunchOutcome::Kind::unknown) return settle(rental, at, outcome);
    tell(parts_, RentEvent::Kind::no_answer, &attempt.offer, outcome.message);
    if (web.now_ms() >= until)
      return fail(Errc::unavailable,
                  fmt::format("{}: it is not known whether a launch came about: {}",
                              offer_words(attempt.offer), outcome.message),
                  "nothing else is tried meanwhile; `lockstep down` ends it once the provider "
                  "answers");
    LOCKSTEP_TRY(ends ? web.pause(backoff.next()) : rest(parts_, rental, backoff.next()));
  }
}

}  // namespace lockstep::cloud
