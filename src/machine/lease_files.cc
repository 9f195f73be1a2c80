#include "machine/lease_files.h"

#include "codec/json_fields.h"
#include "codec/json_members.h"
#include "io/file_lock.h"
#include "io/replace_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::machine {
namespace {

constexpr std::size_t kMostLease = 64UL << 10;

std::string lease_path(const char* name) {
  return std::string(kLeaseFolder) + "/" + name;
}

Result<nlohmann::json> read_lease_json(const char* name) {
  LOCKSTEP_TRY_ASSIGN(const std::string text, io::read_file(lease_path(name), kMostLease));
  nlohmann::json json = codec::parse_json(text);
  if (!json.is_object()) return fail(Errc::corrupt, lease_path(name) + " is not readable");
  return json;
}

Status write_lease_json(const char* name, const nlohmann::ordered_json& json) {
  return io::keep_record(lease_path(name), codec::print_json(json) + "\n");
}

// Mode 0644: any user of the machine may look whether a lock is held.
Result<io::FileLock> open_lock(const char* name) {
  return io::FileLock::open(lease_path(name), 0644);
}

Result<io::Fd> wait_for(const char* name) {
  LOCKSTEP_TRY_ASSIGN(io::FileLock lock, open_lock(name));
  LOCKSTEP_TRY(lock.wait_for_lock());
  return std::move(lock).release();
}

}  // namespace

static void fields(codec::JsonFields& io, KeptLease& lease) {
  io.needed("terms", lease.terms);
  io("begin", lease.begin);
  io("end", lease.end);
  io("hold_until", lease.hold_until);
  io("touched", lease.touched);
  io("timer", lease.timer);
  io("home", lease.home);
  io("state", lease.state);
}

// CLOCK_BOOTTIME also counts time in suspend, and no program can set this clock.
std::int64_t boot_ms() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

Result<KeptLease> read_kept_lease() {
  LOCKSTEP_TRY_ASSIGN(const nlohmann::json json, read_lease_json("lease.json"));
  KeptLease lease;
  if (const Status read = codec::read_fields(json, lease, codec::kTolerantJson); !read)
    return fail(Errc::corrupt, "the lease here makes no sense: " + read.error().message);
  // A damaged file must not give the machine a wrong end.
  LOCKSTEP_TRY(check_terms(lease.terms));
  return lease;
}

Status write_kept_lease(const KeptLease& lease) {
  return write_lease_json("lease.json", codec::write_fields(lease));
}

// The phase has the same words as in the client's LeaseState.
Result<SeenLease> read_seen_lease() {
  LOCKSTEP_TRY_ASSIGN(const nlohmann::json json, read_lease_json("seen.json"));
  LOCKSTEP_TRY_ASSIGN(LeaseState state, lease_state_from_json(json));
  SeenLease seen;
  seen.phase = state.phase;
  seen.idle_since = codec::integer_member(json, "idle_since");
  seen.jobs = state.jobs;
  seen.sessions = state.sessions;
  seen.gpu_percent = state.gpu_percent;
  seen.notice = std::move(state.notice);
  seen.notice_ms = state.notice_ms;
  seen.why = std::move(state.why);
  return seen;
}

Status write_seen_lease(const SeenLease& seen) {
  nlohmann::ordered_json json = to_json(LeaseState{.phase = seen.phase,
                                                   .jobs = seen.jobs,
                                                   .sessions = seen.sessions,
                                                   .gpu_percent = seen.gpu_percent,
                                                   .notice = seen.notice,
                                                   .notice_ms = seen.notice_ms,
                                                   .why = seen.why});
  json["idle_since"] = seen.idle_since;
  return write_lease_json("seen.json", json);
}

LeaseState lease_state() {
  LeaseState state;
  const auto lease = read_kept_lease();
  if (!lease) return state;
  // Clients get durations: their clocks differ from the machine's.
  const std::int64_t now = boot_ms();
  state.phase = LeaseState::Phase::running;
  state.left_ms = std::max<std::int64_t>(lease->end - now, 0);
  state.idle_limit_ms = lease->terms.idle_s * 1000;
  state.held_ms = std::max<std::int64_t>(lease->hold_until - now, 0);
  state.watched = daemon_lives();
  const auto seen = read_seen_lease();
  if (!seen) return state;
  state.phase = seen->phase;
  state.idle_ms = seen->idle_since == 0 ? 0 : std::max<std::int64_t>(now - seen->idle_since, 0);
  state.jobs = seen->jobs;
  state.sessions = seen->sessions;
  state.gpu_percent = seen->gpu_percent;
  state.notice = seen->notice;
  state.notice_ms = seen->notice_ms;
  state.why = seen->why;
  return state;
}

Status make_lease_folder() {
  const std::string path(kLeaseFolder);
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return fail_sys("make " + path, errno);
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return fail_sys("look at " + path, errno);
  // A user who can write here could prolong the lease.
  if (!S_ISDIR(info.st_mode) || info.st_uid != 0 || (info.st_mode & 022) != 0)
    return fail(Errc::denied, path + " must be a folder, writable by root only");
  if (chmod(path.c_str(), 0755) != 0) return fail_sys("open " + path + " to all", errno);
  return {};
}

Result<io::Fd> lease_lock() {
  return wait_for("lock");
}

Result<io::Fd> key_lock() {
  return wait_for("key.lock");
}

Result<io::Fd> daemon_lock() {
  LOCKSTEP_TRY_ASSIGN(io::FileLock lock, open_lock("daemon.lock"));
  LOCKSTEP_TRY_ASSIGN(const bool taken, lock.try_lock());
  if (!taken) return fail(Errc::already_exists, lease_path("daemon.lock") + " is held");
  return std::move(lock).release();
}

bool daemon_lives() {
  // If the lock cannot be tested, assume a daemon. The timer ends the machine in any case.
  return io::FileLock::is_held(lease_path("daemon.lock")).value_or(true);
}

}  // namespace lockstep::machine
