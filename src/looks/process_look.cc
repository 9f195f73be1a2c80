// Parsers for the files of /proc/PID.
#include "looks/process_look.h"

#include "base/text.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace lockstep::looks {
namespace {

// Numbers of the fields of /proc/PID/stat after the command, as proc(5) counts minus 3.
constexpr std::size_t kUserTicks = 11;
constexpr std::size_t kSystemTicks = 12;
constexpr std::size_t kStartTicks = 19;
constexpr std::size_t kRssPages = 21;

std::int64_t number_at(const std::vector<std::string>& fields, std::size_t index) {
  return index < fields.size() ? parse_int(fields[index]).value_or(0) : 0;
}

// Returns the number after "name:" at the beginning of a line.
std::optional<std::int64_t> number_of(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':'))
      return parse_int(line.substr(name.size() + 1));
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace

bool may_read_memory(const ProcessLook& process) {
  if (process.state != 'D') return true;
  for (const long call : {SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_brk, SYS_madvise})
    if (process.syscall == call) return false;
  if (process.syscall >= 0) return true;
  for (const char* const server : {"nfs", "rpc", "fuse", "request_wait"})
    if (process.wchan.starts_with(server)) return false;
  return true;
}

bool parse_stat(std::string_view stat, ProcessLook& into) {
  // The command in parentheses may contain blanks and parentheses itself.
  const std::size_t end = stat.rfind(')');
  if (end == std::string_view::npos || end + 2 >= stat.size()) return false;
  const auto fields = split(strip(stat.substr(end + 2)), ' ');
  if (fields.size() <= kStartTicks || fields[0].size() != 1) return false;
  const auto start = parse_int(fields[kStartTicks]);
  if (!start || *start < 0) return false;
  into.state = fields[0][0];
  into.start_ticks = static_cast<std::uint64_t>(*start);
  into.cpu_ticks = number_at(fields, kUserTicks) + number_at(fields, kSystemTicks);
  into.rss = number_at(fields, kRssPages) * sysconf(_SC_PAGESIZE);
  return true;
}

void parse_status(std::string_view status, ProcessLook& into) {
  if (const auto pid = number_of(status, "TracerPid")) into.tracer = static_cast<pid_t>(*pid);
  if (const auto count = number_of(status, "voluntary_ctxt_switches")) into.voluntary = *count;
  if (const auto count = number_of(status, "nonvoluntary_ctxt_switches")) into.involuntary = *count;
}

// The kernel prints "running", or the number and the arguments: "0 0x0 0x7f... ...".
void parse_syscall(std::string_view syscall, ProcessLook& into) {
  const auto fields = split(strip(syscall), ' ');
  const auto number = parse_int(fields[0]);
  // -1: the thread waits outside of a system call, in a page fault for example.
  if (!number || *number < 0 || *number > 10'000) return;
  into.syscall = static_cast<int>(*number);
  into.reads_stdin = *number == SYS_read && fields.size() > 1 && fields[1] == "0x0";
}

std::string parse_wchan(std::string_view wchan) {
  wchan = strip(wchan);
  return wchan == "0" ? std::string() : printable(wchan, 48);
}

std::optional<std::int64_t> parse_schedstat(std::string_view schedstat) {
  return parse_int(schedstat.substr(0, schedstat.find(' ')));
}

std::optional<Bytes> parse_io(std::string_view io) {
  const auto read = number_of(io, "rchar");
  const auto written = number_of(io, "wchar");
  if (!read || !written) return std::nullopt;
  // rchar does not count what page faults read from mapped files.
  return *read + *written + number_of(io, "read_bytes").value_or(0);
}

}  // namespace lockstep::looks
