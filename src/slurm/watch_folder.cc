#include "slurm/watch_folder.h"

#include "base/text.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace lockstep::slurm {
namespace {

constexpr std::string_view kLog = ".log";
constexpr std::string_view kEnded = " ended";
constexpr std::string_view kEndAgents = " end-agents ";

}  // namespace

WatchFile kind_of_watch_file(std::string_view name) {
  if (name == kLease) return WatchFile::lease;
  return name.ends_with(kLog) ? WatchFile::log : WatchFile::beat;
}

std::string watch_log(std::string_view node) {
  return std::string(node) + std::string(kLog);
}

std::string lease_text(int number, bool ends_agents, std::string_view host) {
  return fmt::format("{}{}{}", number, ends_agents ? kEndAgents : " ", host);
}

bool tells_to_end(std::string_view lease) {
  return lease.find(kEndAgents) != lease.npos;
}

std::string beat_text(int number, bool agent_ended) {
  return fmt::format("{}{}", number, agent_ended ? kEnded : "");
}

bool tells_agent_end(std::string_view beat) {
  return strip(beat).ends_with(kEnded);
}

WatchFolder::WatchFolder(const JobFolder& job, int run, int epoch)
    : path_(job.at(fmt::format("watch/{}.{}", run, epoch))) {}

Status WatchFolder::claim() const {
  (void)mkdir(std::filesystem::path(path_).parent_path().c_str(), 0700);
  if (mkdir(path_.c_str(), 0700) == 0) return {};
  return fail_sys("make " + path_, errno);
}

bool WatchFolder::is_claimed() const {
  struct stat info {};
  return stat(path_.c_str(), &info) == 0;
}

void WatchFolder::beat(std::string_view name, std::string_view text) const {
  const io::Fd file(open(at(name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  // Keep the length constant: a reader on another node may otherwise see half of a longer text.
  const std::string line = fmt::format("{:<39}\n", text.substr(0, 39));
  if (file) (void)!pwrite(file.get(), line.data(), line.size(), 0);
}

std::string WatchFolder::read(std::string_view name) const {
  return io::read_file(at(name), 1024).value_or("");
}

std::vector<std::string> WatchFolder::names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename());
  return names;
}

}  // namespace lockstep::slurm
