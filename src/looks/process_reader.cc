#include "looks/process_reader.h"

#include "base/text.h"
#include "io/fd.h"
#include "io/folder_names.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>

namespace lockstep::looks {
namespace {

// A file of /proc that is read here is far shorter.
constexpr std::size_t kMostText = 8192;
constexpr std::size_t kMostThreads = 1024;

}  // namespace

std::string ProcessReader::text_of(pid_t pid, const char* file) const {
  auto text = io::read_file(fmt::format("{}/{}/{}", proc_, pid, file), kMostText);
  return text ? std::move(*text) : std::string();
}

void ProcessReader::read_times(pid_t pid, ProcessLook& into) const {
  // schedstat is that of the main thread; without it, ticks of all threads are the next best.
  into.main_ns = parse_schedstat(text_of(pid, "schedstat"))
                     .value_or(into.cpu_ticks * (1'000'000'000 / sysconf(_SC_CLK_TCK)));
  into.io = parse_io(text_of(pid, "io")).value_or(0);
}

std::optional<ProcessLook> ProcessReader::read_child(pid_t pid) const {
  ProcessLook look;
  if (!parse_stat(text_of(pid, "stat"), look)) return std::nullopt;
  read_times(pid, look);
  if (look.state == 'D') {
    look.wchan = parse_wchan(text_of(pid, "wchan"));
    parse_syscall(text_of(pid, "syscall"), look);
  }
  return look;
}

std::optional<ProcessLook> ProcessReader::read(pid_t pid) const {
  ProcessLook look;
  if (!parse_stat(text_of(pid, "stat"), look)) return std::nullopt;
  parse_status(text_of(pid, "status"), look);
  parse_syscall(text_of(pid, "syscall"), look);
  look.wchan = parse_wchan(text_of(pid, "wchan"));
  read_times(pid, look);
  look.main_io = parse_io(text_of(pid, fmt::format("task/{}/io", pid).c_str())).value_or(0);
  return look;
}

std::vector<pid_t> ProcessReader::children_of(pid_t pid, std::size_t most, bool all_threads) const {
  // The kernel lists the children of each thread.
  std::vector<std::string> threads = {std::to_string(pid)};
  if (all_threads) threads = io::names_in(fmt::format("{}/{}/task", proc_, pid));
  if (threads.size() > kMostThreads) threads.resize(kMostThreads);
  std::vector<pid_t> out;
  for (const std::string& thread : threads)
    for (const std::string& word :
         split(text_of(pid, fmt::format("task/{}/children", thread).c_str()), ' ')) {
      if (out.size() == most) return out;
      if (const auto child = parse_int(word); child && *child > 0)
        out.push_back(static_cast<pid_t>(*child));
    }
  return out;
}

std::vector<pid_t> ProcessReader::descendants(pid_t root, std::size_t most,
                                              bool all_threads) const {
  std::vector<pid_t> out;
  std::vector<pid_t> parents = {root};
  // Breadth first: with too many descendants, the nearest ones count.
  for (std::size_t next = 0; next < parents.size() && out.size() < most; ++next) {
    for (const pid_t child : children_of(parents[next], most - out.size(), all_threads)) {
      // A process may move to another parent during the walk.
      if (out.size() == most || std::find(parents.begin(), parents.end(), child) != parents.end())
        continue;
      out.push_back(child);
      parents.push_back(child);
    }
  }
  return out;
}

}  // namespace lockstep::looks
