#include "agent/dcgm_job_files.h"

#include "base/log.h"
#include "base/text.h"
#include "io/fd.h"
#include "io/read_now.h"
#include "io/replace_file.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace lockstep::agent {
namespace {

constexpr std::size_t kMostFile = 64UL * 1024;

// Returns the lines of a file that may be missing. Others may write to the folder: a link is not
// followed, and a pipe does not keep the agent waiting.
Result<std::vector<std::string>> lines_of(const std::string& path) {
  const io::Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::vector<std::string>();
  if (!file) return fail_sys("read " + path, errno);
  struct stat facts = {};
  if (fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return fail(Errc::invalid_input, path + " is not a file");
  std::string text;
  io::read_now(file, text, kMostFile + 1);
  if (text.size() > kMostFile) return fail(Errc::exhausted, path + " is too long");
  std::vector<std::string> lines = split(text, '\n');
  std::erase(lines, "");
  return lines;
}

}  // namespace

Result<DcgmJobFiles> DcgmJobFiles::open(const std::string& folder, const std::string& job) {
  struct stat facts = {};
  const bool is_folder = stat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
  if (is_folder && access(folder.c_str(), W_OK | X_OK) == 0) return DcgmJobFiles(folder, job);
  return fail(Errc::invalid_input,
              fmt::format("--dcgm-job-dir {}: {}", printable(folder, 200),
                          is_folder ? "this user may not write there" : "no such folder"),
              "give the folder of dcgm-exporter's --hpc-job-mapping-dir, writable by you");
}

void DcgmJobFiles::show(const std::set<int>& gpus) {
  const auto note = [this](int gpu, bool is_used) {
    const Status done = put(gpu, is_used);
    if (done || std::exchange(told_, true)) return;
    log::warning("--dcgm-job-dir: {}; DCGM's exporter may name another job", done.error().message);
  };
  for (const int gpu : shown_)
    if (!gpus.contains(gpu)) note(gpu, false);
  for (const int gpu : gpus)
    if (!shown_.contains(gpu)) note(gpu, true);
  shown_ = gpus;
}

Status DcgmJobFiles::put(int gpu, bool is_used) const {
  const std::string path = fmt::format("{}/{}", folder_, gpu);
  LOCKSTEP_TRY_ASSIGN(auto lines, lines_of(path));
  std::erase(lines, job_);
  if (is_used) lines.push_back(job_);
  if (lines.empty())
    return unlink(path.c_str()) == 0 || errno == ENOENT ? Status()
                                                        : fail_sys("remove " + path, errno);
  return io::replace_file(path, join(lines, "\n") + "\n");
}

}  // namespace lockstep::agent
