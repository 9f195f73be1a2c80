// Finds, makes, kills and removes a control group.
#include "proc/cgroup.h"

#include "base/text.h"
#include "proc/pid_namespace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <memory>

namespace lockstep::proc {
namespace {

// Returns the mount point of the v2 hierarchy. Its line in mountinfo is "... mountpoint opts -
// cgroup2 ...".
Result<std::string> cgroup2_mount() {
  LOCKSTEP_TRY_ASSIGN(const std::string mounts, io::read_file("/proc/self/mountinfo"));
  for (const std::string& line : split(mounts, '\n')) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    const auto fields = split(line, ' ');
    if (fields.size() > 4) return fields[4];
  }
  return fail(Errc::unavailable, "no cgroup v2 is mounted here");
}

Result<std::string> own_folder() {
  LOCKSTEP_TRY_ASSIGN(std::string folder, cgroup2_mount());
  LOCKSTEP_TRY_ASSIGN(const std::string groups, io::read_file("/proc/self/cgroup"));
  for (const std::string& line : split(groups, '\n'))
    // Hierarchy 0 is cgroup v2. Other lines belong to v1 hierarchies on hybrid systems.
    if (line.starts_with("0::")) return line == "0::/" ? folder : folder + line.substr(3);
  return fail(Errc::unavailable, "this process is in no cgroup v2");
}

// Removes the groups of jobs whose agent and guardian both died. rmdir() refuses while leftovers
// are still inside.
void remove_abandoned(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (!name.starts_with("lockstep-")) continue;
    const auto words = split(name, '-');  // "lockstep-<pid>-<boot>-<namespace>"
    if (words.size() != 4 || words[2] + "-" + words[3] != pid_namespace_id()) continue;
    const auto pid = parse_int(words[1]);
    // ESRCH proves that no such process exists. EPERM would mean a process of another user.
    if (pid && kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH)
      rmdir(std::string(folder).append("/").append(name).c_str());
  }
}

}  // namespace

Result<Cgroup> Cgroup::create() {
  LOCKSTEP_TRY_ASSIGN(const std::string folder, own_folder());
  // The kernel never removes empty groups by itself, and SIGKILL of agent and guardian leaves
  // theirs behind.
  remove_abandoned(folder);
  Cgroup group;
  group.path_ = folder + "/lockstep-" + std::to_string(getpid()) + "-" + pid_namespace_id();
  if (mkdir(group.path_.c_str(), 0755) != 0 && errno != EEXIST)
    return fail_sys("make " + group.path_, errno);
  group.procs_ = io::Fd(open((group.path_ + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  // cgroup.kill exists from Linux 5.14 on. The directory alone is not enough.
  group.kill_ = io::Fd(open((group.path_ + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (!group.procs_ || !group.kill_) {
    const int error = errno;
    rmdir(group.path_.c_str());
    return fail_sys("open " + group.path_ + "/cgroup.kill", error);
  }
  return group;
}

// The kernel kills all members at once, also a process that forks at this moment. Separate signals
// can lose this race.
void Cgroup::kill_all() const {
  if (write(kill_.get(), "1", 1) != 1) return;  // the group is gone already
}

void Cgroup::remove() const {
  // Killed processes leave a group a moment later: until then rmdir() reports EBUSY.
  for (int tries = 0; tries < 1000 && rmdir(path_.c_str()) != 0 && errno == EBUSY; ++tries) {
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace lockstep::proc
