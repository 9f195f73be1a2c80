#include "jobs/here/local_runs.h"

#include "base/clock_ms.h"
#include "base/text.h"
#include "io/fd.h"
#include "io/folder_names.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>

namespace lockstep::jobs::here {
namespace {

constexpr std::size_t kMostFile = 4UL << 20;
constexpr std::string_view kGuardian = "lockstep-guard";

std::vector<std::string> entries_of(const std::string& path) {
  const auto text = io::read_file(path, kMostFile);
  if (!text || text->empty()) return {};
  std::vector<std::string> entries = split(*text, '\0');
  // The text ends with a NUL, which leaves an empty entry behind.
  entries.pop_back();
  return entries;
}

// Returns true for a command started by a user. Processes of a link, and runs under a supervisor,
// are parts of other jobs.
bool is_plain_run(const std::vector<std::string>& argv, const std::string& proc) {
  if (argv.size() < 2 || argv[1] == "link" || argv[1] == "host-job") return false;
  for (const std::string& entry : entries_of(proc + "/environ"))
    if (entry.starts_with("LOCKSTEP_JOB_ID=")) return false;
  return true;
}

// Field NUMBER of a process's `stat`, counted from 1 as in proc(5). nullopt: not known.
std::optional<std::int64_t> stat_field(const std::string& proc, std::size_t number) {
  constexpr std::size_t kBehindName = 3;  // the name may hold spaces; its ')' ends field 2
  const auto stat = io::read_file(proc + "/stat", kMostFile);
  if (!stat || stat->rfind(')') == std::string::npos) return std::nullopt;
  const auto fields = split(std::string(strip(stat->substr(stat->rfind(')') + 1))), ' ');
  return fields.size() > number - kBehindName ? parse_int(fields[number - kBehindName])
                                              : std::nullopt;
}

// When a process started, by the kernel's count of ticks since boot. The times of /proc/PID itself
// change whenever the kernel drops the folder from its cache. 0: not known.
std::int64_t start_ms(const std::string& proc) {
  const auto ticks = stat_field(proc, 22);
  if (!ticks) return 0;
  timespec up{};
  clock_gettime(CLOCK_BOOTTIME, &up);
  const std::int64_t booted_ms = unix_ms() - up.tv_sec * 1000 - up.tv_nsec / 1'000'000;
  return booted_ms + *ticks * 1000 / sysconf(_SC_CLK_TCK);
}

std::optional<LocalRun> run_of(const std::string& proc, pid_t pid) {
  struct stat facts {};
  // Only runs of this user: cancel() could not signal a run of another user.
  if (stat(proc.c_str(), &facts) != 0 || facts.st_uid != geteuid()) return std::nullopt;
  // The guardian is the process that the user started, so a run has the guardian's pid.
  const auto name = io::read_file(proc + "/comm", 64);
  if (!name || strip(*name) != kGuardian) return std::nullopt;
  const std::vector<std::string> argv = entries_of(proc + "/cmdline");
  if (!is_plain_run(argv, proc)) return std::nullopt;
  LocalRun run;
  run.pid = pid;
  run.parent = static_cast<pid_t>(stat_field(proc, 4).value_or(0));
  run.started_ms = start_ms(proc);
  // printable(): the words of a command can contain control characters, which would reach the
  // user's terminal.
  run.words.assign(argv.begin() + 1, argv.end());
  run.command = printable(shell_join(run.words), 500);
  std::error_code error;
  run.folder = std::filesystem::read_symlink(proc + "/cwd", error);
  return run;
}

}  // namespace

std::optional<LocalRun> find_run(pid_t pid) {
  return run_of("/proc/" + std::to_string(pid), pid);
}

std::vector<LocalRun> local_runs() {
  std::vector<LocalRun> runs;
  for (const std::string& name : io::names_in("/proc")) {
    const auto pid = parse_int(name);
    if (!pid || *pid <= 0) continue;
    if (auto run = run_of("/proc/" + name, static_cast<pid_t>(*pid)))
      runs.push_back(std::move(*run));
  }
  // A child of a guardian looks like the guardian until it has become another program.
  std::set<pid_t> guardians;
  for (const LocalRun& run : runs)
    guardians.insert(run.pid);
  std::erase_if(runs, [&](const LocalRun& run) { return guardians.contains(run.parent); });
  return runs;
}

}  // namespace lockstep::jobs::here
