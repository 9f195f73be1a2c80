// What a machine keeps of its lease in /run/lockstep, which a reboot empties: lease.json, written
// by root at a client's request, and seen.json, written by the daemon. Each is replaced at once.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "machine/lease_terms.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::machine {

inline constexpr std::string_view kLeaseFolder = "/run/lockstep";

// Milliseconds of a clock that nobody sets, and that runs while the machine sleeps.
std::int64_t boot_ms();

struct KeptLease {
  LeaseTerms terms;
  std::int64_t begin = 0;  // all by boot_ms()
  std::int64_t end = 0;
  std::int64_t hold_until = 0;
  std::int64_t touched = 0;  // somebody asked for it to stay
  int timer = 0;             // the number of the timer that is armed beside the daemon
  std::string home = {};     // of the user whose machine it is
  std::string state = {};    // that user's state folder, where the jobs lie
};

// What the daemon sees.
struct SeenLease {
  LeaseState::Phase phase = LeaseState::Phase::running;
  std::int64_t idle_since = 0;  // by boot_ms(); 0: it works
  int jobs = 0;
  int sessions = 0;
  int gpu_percent = -1;
  std::string notice = {};
  std::int64_t notice_ms = 0;
  std::string why = {};

  bool operator==(const SeenLease&) const = default;
};

// not_found where there is no lease.
Result<KeptLease> read_kept_lease();
Status write_kept_lease(const KeptLease& lease);
Result<SeenLease> read_seen_lease();
Status write_seen_lease(const SeenLease& seen);

// As a client is told.
LeaseState lease_state();

Status make_lease_folder();
// Held by who changes the lease; waits for it.
Result<io::Fd> lease_lock();
Result<io::Fd> key_lock();
// Held by the daemon as long as it lives; already_exists where there is one.
Result<io::Fd> daemon_lock();
bool daemon_lives();

}  // namespace lockstep::machine
