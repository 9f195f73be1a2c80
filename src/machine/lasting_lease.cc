#include "machine/lasting_lease.h"

#include "base/clock_ms.h"
#include "base/text.h"
#include "codec/json_fields.h"
#include "io/fd.h"
#include "io/replace_file.h"
#include "proc/spawn.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace lockstep::machine {
namespace {

constexpr const char* kLastingFolder = "/var/lib/lockstep";
constexpr const char* kLastingFile = "/var/lib/lockstep/lease.json";
constexpr const char* kUnitFile = "/etc/systemd/system/lockstep-lease.service";
constexpr const char* kWantsFolder = "/etc/systemd/system/multi-user.target.wants";
constexpr const char* kWants = "/etc/systemd/system/multi-user.target.wants/lockstep-lease.service";
constexpr std::size_t kMostLasting = 64UL << 10;
constexpr std::size_t kMostIdentity = 4096;
// cloud-init uses this id on every machine without a data source
constexpr std::string_view kNoDataSource = "iid-datasource-none";
constexpr std::int64_t kClockBack = 60'000;           // a smaller step is only a correction
constexpr std::int64_t kUnknownTime = 20LL * 60'000;  // the same as the timer of the first boot

bool has_systemd() {
  return access("/run/systemd/system", F_OK) == 0;
}

Status make_folder(const char* path) {
  if (mkdir(path, 0755) != 0 && errno != EEXIST)
    return fail_sys(std::string("make ") + path, errno);
  return {};
}

// Removes the copy and the unit, so that no boot resumes the lease.
Status forget_lasting_lease() {
  for (const char* path : {kWants, kUnitFile, kLastingFile})
    if (unlink(path) != 0 && errno != ENOENT) return fail_sys(std::string("remove ") + path, errno);
  return {};
}

}  // namespace

static void fields(codec::JsonFields& io, LastingLease& lasting) {
  io.needed("terms", lasting.lease.terms);
  io("wall", lasting.wall_ms);
  io("left", lasting.left_ms);
  io("held", lasting.held_ms);
  io("home", lasting.lease.home);
  io("state", lasting.lease.state);
  io("machine", lasting.machine);
}

// cloud-init checks at each boot for a new machine. /etc/machine-id comes last, because images
// contain it.
std::string machine_identity(const std::string& root) {
  for (const char* path :
       {"/var/lib/cloud/data/instance-id", "/sys/class/dmi/id/product_uuid", "/etc/machine-id"}) {
    const auto text = io::read_file(root + path, kMostIdentity);
    std::string id(strip(text.value_or("")));
    if (!id.empty() && id != kNoDataSource) return id;
  }
  return {};
}

LastingLease lasting_lease(const KeptLease& lease, std::int64_t wall_ms, std::int64_t now) {
  // Times become durations, because the clock of the next boot starts at zero.
  return {.lease = lease,
          .wall_ms = wall_ms,
          .left_ms = std::max<std::int64_t>(lease.end - now, 0),
          .held_ms = std::max<std::int64_t>(lease.hold_until - now, 0)};
}

KeptLease lease_after_boot(const LastingLease& lasting, std::int64_t wall_ms, std::int64_t now) {
  const std::int64_t passed = wall_ms - lasting.wall_ms;
  // A clock that was set back must not prolong the lease.
  std::int64_t left = lasting.left_ms - std::max<std::int64_t>(passed, 0);
  if (passed < -kClockBack) left = std::min(left, kUnknownTime);
  KeptLease lease = lasting.lease;
  lease.begin = lease.touched = now;
  lease.end = now + std::max<std::int64_t>(left, 0);
  lease.hold_until =
      now + std::max<std::int64_t>(lasting.held_ms - std::max<std::int64_t>(passed, 0), 0);
  // Timers do not survive a reboot.
  lease.timer = 0;
  return lease;
}

// Starts after cloud-init, under all names of its service: cloud-init arms the timer of the first
// boot at each boot, and this program disarms it.
std::string resume_unit(const std::string& own) {
  return fmt::format(
      "[Unit]\n"
      "Description=The lease of this rented machine (lockstep)\n"
      "After=local-fs.target cloud-init.service cloud-init-network.service "
      "cloud-init-main.service\n"
      "ConditionPathExists={}\n"
      "[Service]\n"
      "ExecStart=\"{}\" host-lease resume\n"
      "[Install]\n"
      "WantedBy=multi-user.target\n",
      kLastingFile, own);
}

Status keep_for_reboots(const KeptLease& lease) {
  if (!has_systemd()) return {};
  LastingLease lasting = lasting_lease(lease, unix_ms(), boot_ms());
  lasting.machine = machine_identity();
  LOCKSTEP_TRY(make_folder(kLastingFolder));
  LOCKSTEP_TRY(
      io::keep_record(kLastingFile, codec::print_json(codec::write_fields(lasting)) + "\n"));
  LOCKSTEP_TRY_ASSIGN(const std::string own, proc::own_executable());
  LOCKSTEP_TRY(io::replace_file(kUnitFile, resume_unit(own)));
  LOCKSTEP_TRY(make_folder(kWantsFolder));
  // The link is all that `systemctl enable` would do, and needs no running systemctl.
  if (symlink(kUnitFile, kWants) != 0 && errno != EEXIST)
    return fail_sys(std::string("make ") + kWants, errno);
  return {};
}

Result<LastingLease> read_lasting_lease() {
  LOCKSTEP_TRY_ASSIGN(const std::string text, io::read_file(kLastingFile, kMostLasting));
  LastingLease lasting;
  if (!codec::read_fields(codec::parse_json(text), lasting, codec::kTolerantJson))
    return fail(Errc::corrupt, std::string(kLastingFile) + " is not readable");
  LOCKSTEP_TRY(check_terms(lasting.lease.terms));
  if (lasting.machine == machine_identity()) return lasting;
  // A machine made from an image of a rented one must not end at the other machine's time.
  LOCKSTEP_TRY(forget_lasting_lease());
  return fail(Errc::not_found, "the lease belonged to another machine");
}

}  // namespace lockstep::machine
