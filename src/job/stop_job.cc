#include "job/stop_job.h"

#include "base/text.h"
#include "io/replace_file.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep::job {
namespace {

constexpr const char* kReason = "reason";
constexpr std::size_t kMostReason = 1000;

}  // namespace

Result<io::Fd> stop_job(const JobFiles& files, std::string_view reason) {
  LOCKSTEP_TRY_ASSIGN(const JobRecord record, files.record());
  if (record.state.stage == Stage::ended || record.state.stage == Stage::lost) return io::Fd();
  const auto pid = static_cast<pid_t>(record.state.supervisor);
  io::Fd supervisor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // The pidfd was opened first. If the lock is still held now, the pid has not been reused in
  // between.
  if (!supervisor || !files.has_supervisor()) return io::Fd();
  // Stop the job even if the reason cannot be stored.
  if (!reason.empty()) (void)io::replace_file(files.path(kReason), reason);
  if (syscall(SYS_pidfd_send_signal, supervisor.get(), SIGTERM, nullptr, 0) != 0)
    return fail_sys("stop the job's supervisor", errno);
  return supervisor;
}

std::string stop_reason(const JobFiles& files) {
  return printable(io::read_file(files.path(kReason), kMostReason).value_or(""), kMostReason);
}

void forget_stop_reason(const JobFiles& files) {
  unlink(files.path(kReason).c_str());
}

}  // namespace lockstep::job
