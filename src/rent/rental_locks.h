// Locks between this user's processes: one lock for each rented cluster, and one for the accounts
// at the providers. docs/architecture.md has the order of all locks.
#pragma once

#include "base/error.h"
#include "cloud/web.h"
#include "io/fd.h"

#include <string>
#include <utility>
#include <vector>

namespace lockstep::rent {

class RentalLocks {
 public:
  // folder: this user's state folder.
  explicit RentalLocks(std::string folder) : folder_(std::move(folder)) {}

  // Takes the cluster's lock, without waiting. unavailable: another lockstep holds it.
  Status take(const std::string& cluster);
  void release(const std::string& cluster);
  // Takes the lock for changes of keys and firewall rules in providers' accounts, which several
  // rentals share. Waits up to 60 s, then returns an empty Fd: the holder hangs, and the caller
  // goes on without the lock.
  Result<io::Fd> take_account(cloud::Web& web) const;

 private:
  std::string folder_;
  std::vector<std::pair<std::string, io::Fd>> held_;  // by cluster
};

}  // namespace lockstep::rent
