// Recognises leftovers of dead agents by the mark in their environment.
#include "proc/leftovers.h"

#include "base/text.h"
#include "io/fd.h"
#include "proc/pid_namespace.h"

#include <fmt/core.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <string_view>

namespace lockstep::proc {
namespace {

// Returns the start time (field 22 of /proc/PID/stat). With the pid it identifies a process since
// boot. nullopt: the process has ended.
std::optional<std::string> start_time(pid_t pid) {
  const auto stat = io::read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!stat) return std::nullopt;
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const auto fields = split(std::string_view(*stat).substr(name_end + 2), ' ');
  // A zombie has ended, although it still has an entry.
  if (fields.size() < 20 || fields[0] == "Z" || fields[0] == "X") return std::nullopt;
  return fields[19];
}

std::optional<std::string> variable(const std::string& environ, std::string_view name) {
  const std::string wanted = std::string(name) + "=";
  std::size_t at = 0;
  while (at < environ.size()) {
    const std::size_t end = std::min(environ.find('\0', at), environ.size());
    if (environ.compare(at, wanted.size(), wanted) == 0)
      return environ.substr(at + wanted.size(), end - at - wanted.size());
    at = end + 1;
  }
  return std::nullopt;
}

bool is_leftover_of(const std::string& job, std::string_view tag) {
  // pid, start time, namespace. The rest is the job, which may contain dots.
  std::string_view agent[3];
  for (std::string_view& part : agent) {
    const std::size_t dot = tag.find('.');
    if (dot == std::string_view::npos) return false;
    part = tag.substr(0, dot);
    tag.remove_prefix(dot + 1);
  }
  // A pid of another namespace or machine has no meaning here.
  if (tag != job || agent[2] != pid_namespace_id()) return false;
  const auto pid = parse_int(agent[0]);
  // The same pid with another start time is a different process: the agent is dead.
  return pid && start_time(static_cast<pid_t>(*pid)) != agent[1];
}

bool is_leftover(pid_t pid, const std::string& job) {
  const auto environ = io::read_file("/proc/" + std::to_string(pid) + "/environ", 4 << 20);
  // Most processes have no mark: a plain search is cheaper than parsing.
  if (!environ || environ->find(kAgentTag) == std::string::npos) return false;
  const auto tag = variable(*environ, kAgentTag);
  return tag && is_leftover_of(job, *tag);
}

}  // namespace

std::string agent_tag(const std::string& job) {
  return fmt::format("{}.{}.{}.{}", getpid(), start_time(getpid()).value_or("0"),
                     pid_namespace_id(), job);
}

std::vector<pid_t> kill_leftovers(const std::string& job) {
  std::vector<pid_t> killed;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir("/proc"), closedir);
  if (!dir) return killed;
  while (const dirent* entry = readdir(dir.get())) {
    const auto number = parse_int(entry->d_name);
    if (!number || *number == getpid() || *number == getppid()) continue;
    const auto pid = static_cast<pid_t>(*number);
    // Open the pidfd before looking: the killed process must be the checked process.
    const io::Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd || !is_leftover(pid, job)) continue;
    if (syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) == 0)
      killed.push_back(pid);
  }
  return killed;
}

}  // namespace lockstep::proc
