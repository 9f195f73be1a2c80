// Keeps a lease across a reboot. /run is empty after a boot, so the disk has a copy, and a systemd
// unit resumes the lease.
#pragma once

#include "machine/lease_files.h"

#include <cstdint>
#include <string>

namespace lockstep::machine {

// boot_ms() restarts at zero with each boot, so the disk stores the time left and the wall clock.
struct LastingLease {
  KeptLease lease;
  std::int64_t wall_ms = 0;  // Unix time by the machine's clock when the record was written
  std::int64_t left_ms = 0;  // from then until the lease's end
  std::int64_t held_ms = 0;
  std::string machine = {};  // machine_identity(): an image may copy the disk to another machine
};

// Returns an id that no other machine has; empty: unknown. root: replaces "/" in tests.
std::string machine_identity(const std::string& root = {});

LastingLease lasting_lease(const KeptLease& lease, std::int64_t wall_ms, std::int64_t now);
// Returns the lease for the new boot. now: boot_ms() after the reboot. The end never moves to a
// later time. If the clock went backwards, the elapsed time is unknown, and at most the time of a
// first boot remains.
KeptLease lease_after_boot(const LastingLease& lasting, std::int64_t wall_ms, std::int64_t now);
// Returns the text of the systemd unit. own: path of this program.
std::string resume_unit(const std::string& own);

// Stores the lease and enables the unit. Does nothing without systemd.
Status keep_for_reboots(const KeptLease& lease);
// not_found: no lease, or (after removing it) the lease of the machine behind this machine's image.
Result<LastingLease> read_lasting_lease();

}  // namespace lockstep::machine
