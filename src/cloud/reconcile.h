// Compares the journal with the machines that providers list as Lockstep's. Terminates machines
// without a rental, closes rentals without machines, and reports machines of other installations.
#pragma once

#include "base/error.h"
#include "cloud/journal.h"
#include "cloud/provider.h"

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
  Micros cost = 0;   // estimate so far, where a price is known; else 0
  Error error = {};  // empty: terminated. hint: the console page that terminates the machine
};

struct Reconciled {
  std::vector<Leftover> ended;    // machines of this installation without a rental
  std::vector<Leftover> foreign;  // machines of another installation: reported, left alone
  std::vector<Rental> closed;     // all machines are gone
  std::vector<Rental> ending;     // termination was asked for, and the machines are not gone yet
  // Lines of refused_end.h: providers that refuse to end machines.
  std::vector<std::string> not_ended;
  std::vector<NoAnswer> unheard;  // places that gave no list: their machines are unknown, not none
  std::vector<NoAnswer>
      denied;  // regions that the account may not use, and this journal never used
};

struct ReconcileParts {
  Journal& journal;
  Web& web;
  std::vector<Provider*> providers;  // those with credentials
  std::string owner;
  // Takes a cluster's lock while its rental changes. false: another process has the lock, so the
  // rental is left alone. The rental may have changed, so it is read again under the lock.
  std::function<bool(const std::string& cluster)> try_lock;
  std::function<void(const std::string& cluster)> unlock;
  // The time to wait until unwanted machines are seen gone. The next command looks at the rest.
  std::chrono::milliseconds patience{0};
};

// One provider's list of the machines of every Lockstep installation.
struct Heard {
  Provider* provider = nullptr;
  Result<Listing> listing = {};
};

// Lists machines of all providers and regions at once. Changes nothing here or at a provider, so
// the call may run beside other work with its own Web.
std::vector<Heard> list_ours(Web& web, const std::vector<Provider*>& providers);

// before: the rentals open before the lists were asked for. A machine whose rental was opened or
// closed meanwhile is not a leftover.
Result<Reconciled> reconcile(const ReconcileParts& parts, const std::vector<Rental>& before,
                             const std::vector<Heard>& heard);

// Lists and reconciles. A silent region does not delay the others.
Result<Reconciled> reconcile(const ReconcileParts& parts);

}  // namespace lockstep::cloud
