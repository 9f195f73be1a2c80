#include "status/profile_trace.h"

#include "io/fd.h"
#include "io/folder_names.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

namespace lockstep::status {
namespace {

constexpr std::size_t kTracePiece = 1UL << 20;

// O_NONBLOCK: to open a pipe would wait for a writer.
Result<io::Fd> open_trace(const std::string& path) {
  io::Fd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return fail_sys(path, errno);
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid())
    return fail(Errc::denied, path + " is not a file of this user");
  if (info.st_size > kMostTrace) return trace_too_large(path);
  return file;
}

void remove_other_traces(const std::string& folder, std::int64_t id) {
  const std::string own = fmt::format("{}{}-", kProfileFileHead, id);
  for (const std::string& name : io::names_in(folder))
    if (name.starts_with(kProfileFileHead) && !name.starts_with(own))
      unlink(fmt::format("{}/{}", folder, name).c_str());
}

}  // namespace

Failure trace_too_large(const std::string& path) {
  return fail(Errc::exhausted, path + " is larger than 16 GiB");
}

std::optional<std::string> finished_trace(const std::string& folder, std::int64_t id, int rank) {
  for (const std::string& name : io::names_in(folder))
    if (is_profile_file(name, id, rank)) return fmt::format("{}/{}", folder, name);
  return std::nullopt;
}

void look_for_traces(const ProfileQuery& query, ProfileAnswer& answer) {
  using What = ProfileQuery::What;
  if (answer.ranks.empty()) return;
  if (query.what == What::start) remove_other_traces(answer.folder, query.id);
  for (RankProfile& each : answer.ranks) {
    const auto trace = finished_trace(answer.folder, query.id, each.rank);
    if (!trace) continue;
    each.state = ProfileState::written;
    // The command has left. A folder in memory must not hold the trace until the job's end.
    if (query.what == What::end) unlink(trace->c_str());
  }
}

Status read_trace(const std::string& path, const std::function<Status(std::string_view)>& use) {
  LOCKSTEP_TRY_ASSIGN(const io::Fd file, open_trace(path));
  std::string piece(kTracePiece, '\0');
  std::int64_t total = 0;
  while (true) {
    if (const int number = proc::take_stop_signal({}); number != 0)
      return Failure(Error{Errc::canceled, "stopped by " + proc::signal_name(number), {}, number});
    const ssize_t count = read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_sys(path, errno);
    if (count == 0) return {};
    // A process of the rank may append for as long as this reads.
    if ((total += count) > kMostTrace) return trace_too_large(path);
    LOCKSTEP_TRY(use(std::string_view(piece).substr(0, static_cast<std::size_t>(count))));
  }
}

}  // namespace lockstep::status
