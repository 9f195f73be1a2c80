// Walks and kills the process tree below a process.
#include "proc/process_tree.h"

#include "base/text.h"
#include "io/fd.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

namespace lockstep::proc {
namespace {

using Children = std::map<pid_t, std::vector<pid_t>>;

std::vector<pid_t> numbered_entries(const char* folder) {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder), closedir);
  if (!dir) return out;
  while (const dirent* entry = readdir(dir.get()))
    if (const auto number = parse_int(entry->d_name); number && *number > 0)
      out.push_back(static_cast<pid_t>(*number));
  return out;
}

// Parses pids as the kernel prints them: "12 34 ".
void append_pids(const std::string& text, std::vector<pid_t>& out) {
  for (const std::string& word : split(text, ' '))
    if (const auto pid = parse_int(word)) out.push_back(static_cast<pid_t>(*pid));
}

// Lists every process by parent, for kernels built without /proc/PID/task/TID/children.
Children everybodys_children() {
  Children out;
  for (const pid_t pid : numbered_entries("/proc")) {
    const auto stat = io::read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
    if (!stat) continue;
    const std::size_t name_end = stat->rfind(')');  // the name may contain anything
    if (name_end == std::string::npos) continue;
    const auto fields = split(std::string_view(*stat).substr(name_end + 2), ' ');
    if (fields.size() > 1)
      if (const auto parent = parse_int(fields[1])) out[static_cast<pid_t>(*parent)].push_back(pid);
  }
  return out;
}

bool kernel_lists_children() {
  static const bool yes = access("/proc/thread-self/children", R_OK) == 0;
  return yes;
}

// One system call instead of half a dozen slow reads of /proc.
bool we_have_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

void collect(pid_t pid, const std::set<pid_t>& spared, std::set<pid_t>& seen,
             std::vector<pid_t>& out) {
  for (const pid_t child : children_of(pid)) {
    // A pid may appear twice, as processes move to the subreaper during the walk.
    if (spared.contains(child) || !seen.insert(child).second) continue;
    out.push_back(child);
    collect(child, spared, seen, out);
  }
}

// Reaps ended children. Returns false if there are no children at all.
bool reap_ended(const std::set<pid_t>& spared) {
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return errno != ECHILD;
    // The owner of a spared child wants its exit status, and reaps it in the next turn of the loop.
    if (info.si_pid == 0 || spared.contains(info.si_pid)) return true;
    waitpid(info.si_pid, nullptr, 0);
  }
}

}  // namespace

void become_subreaper() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::vector<pid_t> children_of(pid_t pid) {
  if (pid == getpid() && !we_have_children()) return {};
  if (!kernel_lists_children()) {
    Children all = everybodys_children();
    return all[pid];
  }
  std::vector<pid_t> out;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  // The kernel lists children by parent thread, so visit every thread.
  for (const pid_t task : numbered_entries(tasks.c_str()))
    if (const auto text = io::read_file(tasks + "/" + std::to_string(task) + "/children"))
      append_pids(*text, out);
  return out;
}

std::vector<pid_t> descendants_of(pid_t root, const std::set<pid_t>& spared) {
  std::vector<pid_t> out;
  std::set<pid_t> seen;
  collect(root, spared, seen, out);
  return out;
}

std::vector<pid_t> descendants(const std::set<pid_t>& spared) {
  return descendants_of(getpid(), spared);
}

std::string command_of(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  auto line = io::read_file(folder + "/cmdline", 4096);
  if (line && !line->empty()) {
    while (!line->empty() && line->back() == '\0')
      line->pop_back();
    std::replace(line->begin(), line->end(), '\0', ' ');
    return printable(*line, 120);
  }
  const auto name = io::read_file(folder + "/comm", 64);
  return name ? "[" + std::string(strip(*name)) + "]" : "?";
}

namespace {
// Kills the processes from `list` again and again until none is left or the time is over.
template <class List>
Sweep sweep_until_empty(std::chrono::milliseconds limit, List list) {
  Sweep sweep;
  std::set<pid_t> killed;
  const auto end = std::chrono::steady_clock::now() + limit;
  while (true) {
    const std::vector<pid_t> left = list();
    if (left.empty()) break;
    for (const pid_t pid : left) {
      kill(pid, SIGKILL);
      killed.insert(pid);
    }
    if (std::chrono::steady_clock::now() >= end) {
      sweep.unkillable = left;
      break;
    }
    // Killed processes need a moment to end: do not spin.
    const timespec pause{0, 500'000};
    nanosleep(&pause, nullptr);
  }
  sweep.killed = static_cast<int>(killed.size());
  return sweep;
}
}  // namespace

Sweep sweep_descendants(const std::set<pid_t>& spared, std::chrono::milliseconds limit) {
  return sweep_until_empty(limit, [&]() -> std::vector<pid_t> {
    if (!reap_ended(spared)) return {};
    return descendants(spared);
  });
}

Sweep sweep_below(pid_t root, std::chrono::milliseconds limit) {
  return sweep_until_empty(limit, [&] { return descendants_of(root); });
}

}  // namespace lockstep::proc
