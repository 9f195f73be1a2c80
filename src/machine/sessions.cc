#include "machine/sessions.h"

#include "base/text.h"
#include "io/fd.h"

#include <dirent.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

namespace lockstep::machine {
namespace {

constexpr std::size_t kMostWords = 4;
constexpr std::size_t kMostLine = 4096;

// Commands that only ask: looking at a machine must not keep the machine busy.
constexpr std::string_view kAsking[] = {"link",       "host-lease", "host-health",
                                        "host-facts", "host-job",   "host-dial"};

bool is_sshd(const Process& process) {
  return process.name == "sshd" || process.name == "sshd-session";
}

bool is_ours(const Process& process) {
  if (process.words.empty()) return false;
  const std::string& program = process.words.front();
  return program.substr(program.rfind('/') + 1).starts_with("lockstep");
}

bool only_asks(const Process& process) {
  return is_ours(process) && process.words.size() > 1 &&
         std::find(std::begin(kAsking), std::end(kAsking), process.words[1]) != std::end(kAsking);
}

class Tree {
 public:
  explicit Tree(const std::vector<Process>& processes) {
    for (const Process& process : processes)
      by_pid_[process.pid] = &process;
  }

  const Process* parent(const Process& process) const {
    const auto at = by_pid_.find(process.parent);
    return at == by_pid_.end() || at->second == &process ? nullptr : at->second;
  }
  bool below_sshd(const Process& process) const {
    std::size_t steps = 0;
    // Bounded: pids may be reused while /proc is read.
    for (const Process* up = parent(process); up != nullptr && steps <= by_pid_.size(); ++steps) {
      if (is_sshd(*up)) return true;
      up = parent(*up);
    }
    return false;
  }
  // Adds all ancestors of a process: a login shell may wait above it.
  void collect_above(const Process& process, std::set<pid_t>& into) const {
    for (const Process* up = parent(process); up != nullptr && into.insert(up->pid).second;)
      up = parent(*up);
  }

 private:
  std::map<pid_t, const Process*> by_pid_;
};

std::vector<std::string> words_of(const std::string& folder) {
  std::vector<std::string> words =
      // /proc/PID/cmdline ends each word with a NUL.
      split(io::read_file(folder + "/cmdline", kMostLine).value_or(""), '\0');
  if (words.size() > kMostWords) words.resize(kMostWords);
  return words;
}

}  // namespace

std::vector<Process> all_processes() {
  std::vector<Process> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const auto pid = parse_int(entry->d_name);
    if (!pid || *pid <= 0) continue;
    const std::string path = "/proc/" + std::string(entry->d_name);
    const std::string stat = io::read_file(path + "/stat", kMostLine).value_or("");
    // The name in parentheses may contain ')' and spaces: search from the end.
    const std::size_t begin = stat.find('(');
    const std::size_t end = stat.rfind(')');
    if (begin == std::string::npos || end == std::string::npos || end + 2 > stat.size()) continue;
    const auto fields = split(std::string_view(stat).substr(end + 2), ' ');
    const auto parent = fields.size() > 1 ? parse_int(fields[1]) : std::nullopt;
    // Zombies and dead processes do no work.
    if (!parent || fields[0] == "Z" || fields[0] == "X") continue;
    found.push_back({static_cast<pid_t>(*pid), static_cast<pid_t>(*parent),
                     stat.substr(begin + 1, end - begin - 1), words_of(path)});
  }
  return found;
}

int working_sessions(const std::vector<Process>& processes) {
  const Tree tree(processes);
  std::set<pid_t> idle;
  // The parents of an asking command only wait for it.
  for (const Process& process : processes)
    if (only_asks(process)) {
      idle.insert(process.pid);
      tree.collect_above(process, idle);
    }
  return static_cast<int>(
      std::count_if(processes.begin(), processes.end(), [&](const Process& process) {
        return !is_sshd(process) && !idle.contains(process.pid) && tree.below_sshd(process);
      }));
}

std::vector<pid_t> listening_sshds(const std::vector<Process>& processes) {
  const Tree tree(processes);
  std::vector<pid_t> found;
  for (const Process& process : processes) {
    if (process.name != "sshd" || process.words.empty()) continue;
    const Process* parent = tree.parent(process);
    // sshd rewrites the title of a session's process: "sshd: user@pts/0", "sshd: user [priv]".
    const std::string& title = process.words.front();
    const bool session = title.find('@') != std::string::npos ||
                         title.find("[priv]") != std::string::npos ||
                         title.find("[net]") != std::string::npos;
    // SIGHUP to the process of a session would end that session, which may be the client's own.
    if (!session && (parent == nullptr || !is_sshd(*parent))) found.push_back(process.pid);
  }
  return found;
}

}  // namespace lockstep::machine
