#include "jobs/profile_files.h"

#include "io/fd.h"
#include "status/profile_merge.h"
#include "status/profile_trace.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

namespace lockstep::jobs {
namespace {

// Appends one trace to the merged file. Returns why it is not used; empty: it is. base: of the
// traces before.
Result<std::string> append_trace(const std::string& path, status::MergedTrace& trace, int into,
                                 const std::string& merged) {
  std::string out;
  bool is_trace = true;
  LOCKSTEP_TRY(status::read_trace(path, [&](std::string_view piece) -> Status {
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
    // Kineto counts the times of a trace from its baseTimeNanoseconds.
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

// Makes the file anew: in a shared folder another user may have planted a FIFO, which would block
// the write, or a file that others can read.
Result<io::Fd> create_trace(const std::string& path) {
  (void)unlink(path.c_str());
  io::Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) return fail_sys(path, errno);
  return file;
}

}  // namespace

Status write_trace(const std::string& to, const std::function<Status(const io::Fd&)>& write) {
  // The final name must never stand for a part of a trace.
  const std::string part = to + ".part";
  LOCKSTEP_TRY_ASSIGN(const io::Fd file, create_trace(part));
  Status written = write(file);
  if (written && rename(part.c_str(), to.c_str()) != 0) written = fail_sys(to, errno);
  if (!written) unlink(part.c_str());
  return written;
}

Status take_trace(const std::string& from, const std::string& to,
                  const std::function<Status()>& meanwhile) {
  Status written = write_trace(to, [&](const io::Fd& file) {
    return status::read_trace(from, [&](std::string_view piece) -> Status {
      LOCKSTEP_TRY(io::write_all(file.get(), piece, to));
      return meanwhile();
    });
  });
  if (written) unlink(from.c_str());
  return written;
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

}  // namespace lockstep::jobs
