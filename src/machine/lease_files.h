// A machine's record of its lease in /run/lockstep, which a reboot empties: lease.json, written by
// root for a client, and seen.json, written by the daemon. Each is replaced in one step.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "machine/lease_terms.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::machine {

inline constexpr std::string_view kLeaseFolder = "/run/lockstep";

// Returns milliseconds of CLOCK_BOOTTIME, which cannot be set and also runs during sleep.
std::int64_t boot_ms();

struct KeptLease {
  LeaseTerms terms;
  std::int64_t begin = 0;  // this and all times below by boot_ms()
  std::int64_t end = 0;
  std::int64_t hold_until = 0;
  std::int64_t touched = 0;  // the last time a client prolonged the lease
  int timer = 0;             // number of the timer that is armed in addition to the daemon
  std::string home = {};     // home of the user who logs in
  std::string state = {};    // the same user's state folder, where jobs are
};

// The daemon's observations.
struct SeenLease {
  LeaseState::Phase phase = LeaseState::Phase::running;
  std::int64_t idle_since = 0;  // by boot_ms(); 0: at work
  int jobs = 0;
  int sessions = 0;
  int gpu_percent = -1;
  std::string notice = {};
  std::int64_t notice_ms = 0;
  std::string why = {};

  bool operator==(const SeenLease&) const = default;
};

// not_found: no lease.
Result<KeptLease> read_kept_lease();
Status write_kept_lease(const KeptLease& lease);
Result<SeenLease> read_seen_lease();
Status write_seen_lease(const SeenLease& seen);

// Returns the state as a client is told.
LeaseState lease_state();

Status make_lease_folder();
// Lock for changes of the lease; waits for another holder.
Result<io::Fd> lease_lock();
Result<io::Fd> key_lock();
// Held by the daemon as long as it lives. already_exists: another daemon runs.
Result<io::Fd> daemon_lock();
bool daemon_lives();

}  // namespace lockstep::machine
