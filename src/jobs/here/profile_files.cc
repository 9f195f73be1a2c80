#include "jobs/here/profile_files.h"

#include "io/fd.h"
#include "io/folder_names.h"
#include "proc/signals.h"
#include "status/profile_answer.h"
#include "status/profile_merge.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <string_view>
#include <utility>

namespace lockstep::jobs::here {
namespace {

constexpr off_t kMostTrace = off_t{16} << 30;
constexpr std::size_t kTracePiece = 1UL << 20;

Failure too_large(const std::string& path) {
  return fail(Errc::exhausted, path + " is larger than 16 GiB");
}

Result<io::Fd> open_trace(const std::string& path) {
  io::Fd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return fail_sys(path, errno);
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid())
    return fail(Errc::denied, path + " is not a file of this user");
  if (info.st_size > kMostTrace) return too_large(path);
  return file;
}

Result<io::Fd> create_trace(const std::string& path) {
  io::Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file) return fail_sys(path, errno);
  return file;
}

// Calls `use` with each piece of a file. A stop signal ends the reading.
Status for_each_piece(const std::string& path, const std::function<Status(std::string_view)>& use) {
  LOCKSTEP_TRY_ASSIGN(const io::Fd file, open_trace(path));
  std::string piece(kTracePiece, '\0');
  off_t total = 0;
  while (true) {
    if (const int number = proc::take_stop_signal({}); number != 0)
      return Failure(Error{Errc::canceled, "stopped by " + proc::signal_name(number), {}, number});
    const ssize_t count = read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_sys(path, errno);
    if (count == 0) return {};
    // A process of the rank may append for as long as this reads.
    if ((total += count) > kMostTrace) return too_large(path);
    LOCKSTEP_TRY(use(std::string_view(piece).substr(0, static_cast<std::size_t>(count))));
  }
}

// Appends one trace to the merged file. Returns why it is not used; empty: it is. base: of the
// traces before.
Result<std::string> append_trace(const std::string& path, status::MergedTrace& trace, int into,
                                 const std::string& merged) {
  std::string out;
  bool is_trace = true;
  LOCKSTEP_TRY(for_each_piece(path, [&](std::string_view piece) -> Status {
    if (!is_trace) return {};
    out.clear();
    is_trace = trace.feed(piece, out);
    return io::write_all(into, out, merged);
  }));
  if (!is_trace) return std::string("the trace is malformed");
  return trace.is_whole() ? std::string() : std::string("the trace is not whole");
}

Result<Merged> merge_into(const io::Fd& file, const std::string& path, const std::string& folder,
                          const std::vector<int>& ranks) {
  Merged merged{.path = path};
  LOCKSTEP_TRY(io::write_all(file.get(), status::merged_head(), merged.path));
  bool first = true;
  std::string base;
  for (const int rank : ranks) {
    const auto place = static_cast<int>(merged.ranks.size());
    if (place == status::kMostMergedTraces) {
      merged.left_out.push_back(fmt::format("rank {}: one trace holds 200 ranks", rank));
      continue;
    }
    const off_t before = lseek(file.get(), 0, SEEK_CUR);
    status::MergedTrace trace(rank, place, first);
    LOCKSTEP_TRY_ASSIGN(std::string problem,
                        append_trace(trace_path(folder, rank), trace, file.get(), merged.path));
    if (problem.empty() && place > 0 && trace.base() != base)
      problem = "its times count from another moment";
    if (!problem.empty()) {
      // Back to before this trace.
      if (ftruncate(file.get(), before) != 0 || lseek(file.get(), before, SEEK_SET) != before)
        return fail_sys(merged.path, errno);
      merged.left_out.push_back(fmt::format("rank {}: {}", rank, problem));
      continue;
    }
    first = !trace.has_events();
    base = trace.base();
    merged.ranks.push_back(rank);
  }
  LOCKSTEP_TRY(io::write_all(file.get(), status::merged_tail(base), merged.path));
  return merged;
}

}  // namespace

std::optional<std::string> finished_trace(const std::string& folder, std::int64_t id, int rank) {
  for (const std::string& name : io::names_in(folder))
    if (status::is_profile_file(name, id, rank)) return fmt::format("{}/{}", folder, name);
  return std::nullopt;
}

Status take_trace(const std::string& from, const std::string& to) {
  LOCKSTEP_TRY(open_trace(from));
  LOCKSTEP_TRY_ASSIGN(const io::Fd file, create_trace(to));
  Status copied = for_each_piece(
      from, [&](std::string_view piece) { return io::write_all(file.get(), piece, to); });
  unlink(copied ? from.c_str() : to.c_str());
  return copied;
}

std::string trace_path(const std::string& folder, int rank) {
  return fmt::format("{}/rank-{}.json", folder, rank);
}

Result<Merged> merge_traces(const std::string& folder, const std::vector<int>& ranks) {
  const std::string path = folder + "/profile.json";
  LOCKSTEP_TRY_ASSIGN(const io::Fd file, create_trace(path));
  auto merged = merge_into(file, path, folder, ranks);
  if (!merged) unlink(path.c_str());
  return merged;
}

}  // namespace lockstep::jobs::here
