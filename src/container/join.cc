#include "container/join.h"

#include "io/fd.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::container {
namespace {

struct Kind {
  const char* name;
  int flag;
};
// The user namespace comes first, because its members have the right to join the others.
constexpr std::array<Kind, 5> kKinds = {Kind{"user", CLONE_NEWUSER}, Kind{"mnt", CLONE_NEWNS},
                                        Kind{"ipc", CLONE_NEWIPC}, Kind{"uts", CLONE_NEWUTS},
                                        Kind{"net", CLONE_NEWNET}};

Failure cannot(const std::string& what) {
  const int why = errno;
  Error error = fail_sys("enter the container: " + what, why).value();
  error.code = why == ENOENT || why == ESRCH ? Errc::unavailable : Errc::denied;
  return Failure(std::move(error));
}

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

Status join(pid_t pid) {
  const std::string process = fmt::format("/proc/{}", pid);
  // Open all files first: after a change of the mounts, /proc may be another.
  const io::Fd root(open((process + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return cannot("its root");
  const io::Fd folder(open((process + "/cwd").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return cannot("its folder");
  std::vector<std::pair<Kind, io::Fd>> others;
  for (const Kind& kind : kKinds) {
    io::Fd fd(open(fmt::format("{}/ns/{}", process, kind.name).c_str(), O_RDONLY | O_CLOEXEC));
    struct stat theirs {};
    struct stat ours {};
    if (!fd || fstat(fd.get(), &theirs) != 0 ||
        stat(fmt::format("/proc/self/ns/{}", kind.name).c_str(), &ours) != 0)
      return cannot(fmt::format("its {} namespace", kind.name));
    // The kernel refuses the user namespace that this process is in.
    if (!is_same(theirs, ours)) others.emplace_back(kind, std::move(fd));
  }
  for (const auto& [kind, fd] : others)
    if (setns(fd.get(), kind.flag) != 0) return cannot(fmt::format("its {} namespace", kind.name));
  struct stat theirs {};
  struct stat ours {};
  if (fstat(root.get(), &theirs) != 0 || stat("/", &ours) != 0) return cannot("its root");
  // A runtime may have changed the root by chroot() alone.
  if (!is_same(theirs, ours) && (fchdir(root.get()) != 0 || chroot(".") != 0))
    return cannot("its root");
  if (fchdir(folder.get()) != 0) return cannot("its folder");
  return {};
}

}  // namespace lockstep::container
