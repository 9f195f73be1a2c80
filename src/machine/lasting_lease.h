// A lease outlasts a reboot of its machine: what /run forgets lies on the disk, too, and a unit of
// systemd's takes it up again at boot.
#pragma once

#include "machine/lease_files.h"

#include <cstdint>
#include <string>

namespace lockstep::machine {

// The clock that nobody sets begins anew with each boot, so the disk has what is left, and when.
struct LastingLease {
  KeptLease lease;
  std::int64_t wall_ms = 0;  // Unix time by the machine's clock, when this was written
  std::int64_t left_ms = 0;  // until its end, then
  std::int64_t held_ms = 0;
  std::string machine = {};  // machine_identity(): its disk may be copied to others, as an image
};

// root: the folder that is "/". What only this machine has; empty: nothing is known.
std::string machine_identity(const std::string& root = {});

LastingLease lasting_lease(const KeptLease& lease, std::int64_t wall_ms, std::int64_t now);
// now: by boot_ms(), after a reboot. The end is never later than it was: a clock that has gone back
// tells nothing, and leaves no more time than a first boot has.
KeptLease lease_after_boot(const LastingLease& lasting, std::int64_t wall_ms, std::int64_t now);
// own: the path of this program.
std::string resume_unit(const std::string& own);

// Where there is systemd; elsewhere nothing would read it.
Status keep_for_reboots(const KeptLease& lease);
// not_found: it is that of the machine whose image this one was made from, and is gone now.
Result<LastingLease> read_lasting_lease();

}  // namespace lockstep::machine
