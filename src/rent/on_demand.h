// The world of a process that rents machines on demand: the providers, the journal, the network,
// the signals to stop, the locks, and the guards on other hosts. Actions on rentals are functions
// that take this world: market.h, gang.h, first_contact.h, ssh_access.h, sweep.h.
#pragma once

#include "base/error.h"
#include "cloud/journal.h"
#include "cloud/provider.h"
#include "cloud/web.h"
#include "rent/guard_hosts.h"
#include "rent/provider_set.h"
#include "rent/rental_locks.h"
#include "rent/silent_port.h"
#include "rent/stop_signals.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace lockstep::rent {

class OnDemand {
 public:
  struct Parts {
    cloud::Ground ground;  // with the owner
    cloud::Journal journal;
    ProviderSet providers;
    StopSignals signals;
    std::unique_ptr<cloud::Web> web;
    // Terminates machines. Stops at a second signal only.
    SideWeb side;
  };

  // Opens the journal and the providers. The handled signals must be blocked: a signal during a
  // request ends the request with Errc::canceled.
  static Result<std::unique_ptr<OnDemand>> open();
  // For tests, with parts of their own.
  explicit OnDemand(Parts parts);
  OnDemand(const OnDemand&) = delete;
  OnDemand& operator=(const OnDemand&) = delete;

  const cloud::Ground& ground() const { return parts_.ground; }
  const std::string& owner() const { return parts_.ground.owner; }
  cloud::Journal& journal() { return parts_.journal; }
  const ProviderSet& providers() const { return parts_.providers; }
  StopSignals& signals() { return parts_.signals; }
  cloud::Web& web() { return *parts_.web; }
  std::int64_t now_ms() const { return parts_.web->now_ms(); }  // Unix time
  // For requests beside the main ones, and for terminating machines.
  SideWeb& side() { return parts_.side; }
  RentalLocks& locks() { return locks_; }
  GuardHosts& guards() { return guards_; }
  const GuardHosts& guards() const { return guards_; }
  // Counts machines in a row without an answer, over all rentals of this process.
  SilentMachines& silent_machines() { return silent_machines_; }

 private:
  Parts parts_;
  RentalLocks locks_;
  GuardHosts guards_;
  SilentMachines silent_machines_;
};

}  // namespace lockstep::rent
