#include "machine/lease_files.h"

#include "codec/json_fields.h"
#include "codec/json_members.h"
#include "io/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
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

Result<io::Fd> locked(const char* name, int how) {
  const std::string path = lease_path(name);
  io::Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) return fail_sys("open " + path, errno);
  while (flock(fd.get(), how) != 0) {
    if (errno == EWOULDBLOCK) return fail(Errc::already_exists, path + " is held");
    if (errno != EINTR) return fail_sys("lock " + path, errno);
  }
  return fd;
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
    return fail(Errc::denied, path + " must be a folder that only root can write to");
  if (chmod(path.c_str(), 0755) != 0) return fail_sys("open " + path + " to all", errno);
  return {};
}

Result<io::Fd> lease_lock() {
  return locked("lock", LOCK_EX);
}

Result<io::Fd> key_lock() {
  return locked("key.lock", LOCK_EX);
}

Result<io::Fd> daemon_lock() {
  return locked("daemon.lock", LOCK_EX | LOCK_NB);
}

bool daemon_lives() {
  const io::Fd fd(open(lease_path("daemon.lock").c_str(), O_RDONLY | O_CLOEXEC));
  return fd && flock(fd.get(), LOCK_SH | LOCK_NB) != 0;
}

}  // namespace lockstep::machine
