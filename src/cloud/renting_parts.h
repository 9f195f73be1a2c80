// What renting works with: the journal, the providers, the rules of patience, and the listener of
// progress. Also the steps that all parts of renting share.
#pragma once

#include "base/error.h"
#include "cloud/journal.h"
#include "cloud/provider.h"
#include "cloud/rental.h"
#include "io/fd.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// Progress, for people.
struct RentEvent {
  enum class Kind {
    asking,     // a launch request is under way
    refused,    // the launch made no machine
    no_answer,  // the launch may have made machines
    booting,    // the machines exist
    running,
    rejected,  // the machines run, but are not usable
    ending,
    not_ended,  // the provider refuses to terminate a machine; `text` says what to do
    pausing,    // no provider has capacity now; `text` says when each is asked again
  };
  Kind kind = Kind::asking;
  const Offer* offer = nullptr;  // may be null
  std::string text = {};
};

struct RentRules {
  using ms = std::chrono::milliseconds;
  // The time to wait for capacity. nullopt: for ever. Negative: launch nothing, and only take up
  // machines of an earlier command.
  std::optional<ms> wait = std::chrono::minutes(15);
  ms boot_patience = std::chrono::minutes(20);
  ms unknown_patience = std::chrono::minutes(5);  // to settle an unanswered launch
  ms end_patience = std::chrono::minutes(10);
  ms unlisted = std::chrono::seconds(60);  // lists may lack a new machine for so long
  std::size_t most_kept = 100;             // attempts without machines that the journal keeps
};

struct RentParts {
  Journal& journal;
  Web& web;
  Web& ending;  // for terminating, even after the user stopped `web`
  std::function<Provider*(std::string_view name)> provider;  // nullptr: no credentials for it
  std::function<void(const RentEvent&)> tell;
  // Called when a launch is on disk, before any byte of it leaves. An error cancels the launch.
  std::function<Status(const Rental&)> before_call = {};
  // Takes a lock for the time of prepare(), since another process may change or remove the same
  // firewall rules and keys.
  std::function<Result<io::Fd>()> hold_account = {};
};

// The pause between two lists of machines that boot or end. A running machine is noticed within 1.2
// s. Providers that allow fewer calls slow them down by themselves.
inline constexpr std::chrono::milliseconds kLookPause{800};

void tell(const RentParts& parts, RentEvent::Kind kind, const Offer* offer, std::string text = {});

// Pauses until `time` is over. Fails if the user stops this command, or if `lockstep down` in
// another process marks the rental for termination.
Status rest(const RentParts& parts, const Rental& rental, std::chrono::milliseconds time);

// Returns "aws g5.xlarge (spot) in us-east-1a".
std::string offer_words(const Offer& offer);

// Makes the error for a provider whose credentials are missing. done: "ended".
Failure without_keys(const std::string& provider, const char* done);

}  // namespace lockstep::cloud
