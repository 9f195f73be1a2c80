// Starts the guard and tells whether a guard runs: a running guard holds guard.lock.
#include "rent/guard.h"

#include "base/text.h"
#include "io/file_lock.h"
#include "io/own_folders.h"
#include "proc/spawn.h"
#include "proc/tool_output.h"
#include "rent/guard_files.h"
#include "rent/on_demand.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace lockstep::rent {
namespace {

constexpr int kGuardLookMs = 20;
constexpr int kGuardLooks = 1000;         // 20 s for the guard to start or exit
constexpr off_t kMostGuardLog = 1 << 20;  // a longer log is emptied

std::string guard_path(const char* name) {
  return io::state_folder() + "/" + name;
}

Result<io::Fd> open_own(const std::string& path, int flags) {
  LOCKSTEP_TRY(io::make_folders(io::state_folder()));
  io::Fd file(::open(path.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail_sys("open " + path, errno);
  return file;
}

// Reads guard.lock: the guard's pid, then the names of the providers whose credentials it has.
std::vector<std::string> guard_words() {
  const auto text = io::read_file(guard_path(kGuardLock), 4096);
  return text ? split(strip(*text), ' ') : std::vector<std::string>();
}

// Returns whether the running guard may stay. A guard must go without credentials for a provider
// whose machines only a guard can terminate. A guard without other credentials of this process
// stays only if this process also lacks some of the guard's: replacing the guard would lose those.
bool knows_keys(const std::vector<std::string>& words, const OnDemand& world) {
  bool lacks = false;
  bool has_more = false;
  for (const auto& provider : world.providers().all()) {
    const bool knows =
        std::find(words.begin(), words.end(), provider->traits().name) != words.end();
    const bool ours = provider->keys().has_value();
    if (ours && !knows && provider->traits().ending == cloud::Ending::with_guard) return false;
    lacks = lacks || (ours && !knows);
    has_more = has_more || (knows && !ours);
  }
  return !lacks || has_more;
}

void end_guard(const std::vector<std::string>& words) {
  const auto pid = words.empty() ? std::nullopt : parse_int(words.front());
  if (!pid || *pid <= 1 || !guard_lives()) return;
  // Wait for the old guard to exit: it still holds guard.lock, and a new guard would exit at once.
  kill(static_cast<pid_t>(*pid), SIGTERM);
  for (int look = 0; look < kGuardLooks && guard_lives(); ++look)
    poll(nullptr, 0, kGuardLookMs);
}

// The guard runs in "/", so relative paths of key and certificate files would point nowhere. Make
// them absolute.
std::vector<std::string> environment_elsewhere(const OnDemand& world) {
  std::vector<std::string_view> files = {"LOCKSTEP_CA_FILE", "SSL_CERT_FILE"};
  for (const auto& provider : world.providers().all())
    for (const std::string_view name : provider->traits().file_variables)
      files.push_back(name);
  std::vector<std::string> env = proc::own_environment();
  for (std::string& each : env) {
    const std::size_t is = each.find('=');
    if (is == std::string::npos || is + 1 == each.size() || each[is + 1] == '/' ||
        std::find(files.begin(), files.end(), std::string_view(each).substr(0, is)) == files.end())
      continue;
    std::error_code error;
    const auto path = std::filesystem::absolute(each.substr(is + 1), error);
    if (!error) each.replace(is + 1, std::string::npos, path);
  }
  return env;
}

Status start_guard(const OnDemand& world) {
  LOCKSTEP_TRY_ASSIGN(const io::Fd log, open_own(guard_log(), O_WRONLY | O_APPEND));
  struct stat info {};
  if (fstat(log.get(), &info) == 0 && info.st_size > kMostGuardLog) (void)ftruncate(log.get(), 0);
  const io::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  proc::SpawnSpec spec;
  LOCKSTEP_TRY_ASSIGN(spec.executable, proc::own_executable());
  spec.argv = {"lockstep", kGuardCommand};
  spec.env = environment_elsewhere(world);
  spec.folder = "/";
  spec.stdin_fd = null.get();
  spec.stdout_fd = spec.stderr_fd = log.get();
  // The guard must outlive this command.
  spec.die_with_parent = false;
  LOCKSTEP_TRY_ASSIGN(proc::Child child, proc::spawn(spec));
  for (int look = 0; look < kGuardLooks && !guard_lives(); ++look) {
    if (child.reap()) break;
    poll(nullptr, 0, kGuardLookMs);
  }
  if (guard_lives()) return {};
  return fail(Errc::unavailable, "the guard does not start", "see " + guard_log());
}

}  // namespace

bool wants_guard(const cloud::Rental& rental) {
  return rental.terms.guard == "here" && rental.closed_ms == 0;
}

std::string guard_log() {
  return guard_path("guard.log");
}

bool guard_lives() {
  // Query the lock without taking it: a guard starting just now must be able to take the lock.
  return io::FileLock::range_is_held(guard_path(kGuardLock), {});
}

Result<io::Fd> take_guard_lock(const OnDemand& world) {
  LOCKSTEP_TRY(io::make_folders(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(io::FileLock file, io::FileLock::open(guard_path(kGuardLock)));
  LOCKSTEP_TRY_ASSIGN(const bool taken, file.try_lock_range({}));
  if (!taken) return fail(Errc::already_exists, "another guard is running");
  // Later commands read these words to decide whether this guard has the credentials they need.
  std::string words = std::to_string(getpid());
  for (const auto& provider : world.providers().all())
    if (provider->keys()) words += fmt::format(" {}", provider->traits().name);
  words += '\n';
  if (ftruncate(file.fd(), 0) != 0 ||
      pwrite(file.fd(), words.data(), words.size(), 0) != static_cast<ssize_t>(words.size()))
    return fail_sys("write " + guard_path(kGuardLock), errno);
  return std::move(file).release();
}

Result<io::FileLock> lock_guard_use(GuardUse use) {
  using Lock = io::FileLock;
  LOCKSTEP_TRY(io::make_folders(io::state_folder()));
  const bool waits = use == GuardUse::need;
  return Lock::take(guard_path("guard.use"), waits ? Lock::IfHeld::wait : Lock::IfHeld::fail,
                    waits ? Lock::Kind::shared : Lock::Kind::exclusive);
}

Result<io::Fd> need_guard(const OnDemand& world) {
  LOCKSTEP_TRY_ASSIGN(io::FileLock use, lock_guard_use(GuardUse::need));
  if (guard_lives()) {
    const std::vector<std::string> words = guard_words();
    if (knows_keys(words, world)) return std::move(use).release();
    end_guard(words);
  }
  LOCKSTEP_TRY(start_guard(world));
  return std::move(use).release();
}

}  // namespace lockstep::rent
