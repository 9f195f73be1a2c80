// Compares what the providers list as ours with the journal: ends what nobody wants, closes what is
// gone, and shows what belongs to others.
#pragma once

#include "base/error.h"
#include "cloud/journal.h"
#include "cloud/provider.h"
#include "cloud/renting.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::cloud {

struct Leftover {
  std::string provider;
  Machine machine;
  Micros cost = 0;   // about what it has cost, where there is a price for it; else 0
  Error error = {};  // empty: ended. hint: the console page that ends the machine
};

struct Reconciled {
  std::vector<Leftover> ended;    // ours, and nobody wanted it
  std::vector<Leftover> foreign;  // of another installation: shown, left alone
  std::vector<Rental> closed;     // all of its machines are gone
  std::vector<Rental> ending;     // asked to end, and not seen gone yet
  // Lines of refused_end.h: providers that refuse to end machines.
  std::vector<std::string> not_ended;
  std::vector<Silence> unheard;  // machines there are unknown, not none
  std::vector<Silence> denied;   // regions that the account may not use, and never used from here
};

struct ReconcileParts {
  Journal& journal;
  Web& web;
  std::vector<Provider*> providers;  // those with keys
  std::string owner;
  // Holds a cluster's lock while its rental is changed; false: another lockstep has it, and what
  // is its is left alone. Whoever changes a rental reads it once more when it has the lock.
  std::function<bool(const std::string& cluster)> try_lock;
  std::function<void(const std::string& cluster)> unlock;
  // For what is not wanted to be seen gone; what is not is looked at by the next command.
  std::chrono::milliseconds patience{0};
};

// What one provider lists as anybody's lockstep.
struct Heard {
  Provider* provider = nullptr;
  Result<Listing> listing = {};
};

// Asks all providers and regions at once. Changes nothing, here or there: it may be done beside
// other work, with a Web of its own.
std::vector<Heard> list_ours(Web& web, const std::vector<Provider*>& providers);

// before: what was open before they were asked. What is rented, or given back, between the two is
// nobody's leftover.
Result<Reconciled> reconcile(const ReconcileParts& parts, const std::vector<Rental>& before,
                             const std::vector<Heard>& heard);

// Both. A region that does not answer keeps nothing else.
Result<Reconciled> reconcile(const ReconcileParts& parts);

}  // namespace lockstep::cloud
