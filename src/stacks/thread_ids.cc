// Reads NSpid of /proc/PID/status and of its threads.
#include "stacks/thread_ids.h"

#include "base/text.h"
#include "io/fd.h"
#include "io/folder_names.h"

#include <string>

namespace lockstep::stacks {
namespace {

constexpr std::size_t kMostTasks = 4'096;

std::vector<pid_t> ids_of(const std::string& folder) {
  const auto status = io::read_file(folder + "/status", 1U << 14);
  return status ? ids_in_status(*status) : std::vector<pid_t>();
}

}  // namespace

std::vector<pid_t> ids_in_status(std::string_view status) {
  constexpr std::string_view kKey = "\nNSpid:";
  const std::size_t at = status.find(kKey);
  if (at == std::string_view::npos) return {};
  status.remove_prefix(at + kKey.size());
  std::vector<pid_t> ids;
  for (const std::string& word : split(status.substr(0, status.find('\n')), '\t'))
    if (const auto id = parse_int(strip(word))) ids.push_back(static_cast<pid_t>(*id));
  return ids;
}

ThreadIds::ThreadIds(pid_t pid) : pid_(pid), inner_pid_(pid) {
  const auto ids = ids_of("/proc/" + std::to_string(pid));
  if (ids.size() > 1) inner_pid_ = ids.back();
}

pid_t ThreadIds::outer(pid_t inner) {
  if (inner == inner_pid_) return pid_;
  if (inner_pid_ == pid_ || inner == 0) return inner;
  if (!outer_.contains(inner)) refresh();
  const auto found = outer_.find(inner);
  return found == outer_.end() ? 0 : found->second;
}

void ThreadIds::refresh() {
  // The kernel reuses ids of threads that have ended: forget all.
  outer_.clear();
  const std::string tasks = "/proc/" + std::to_string(pid_) + "/task/";
  for (const std::string& name : io::names_in(tasks)) {
    if (outer_.size() >= kMostTasks) return;
    std::string task = tasks;
    task += name;
    const auto ids = ids_of(task);
    if (ids.size() > 1) outer_[ids.back()] = ids.front();
  }
}

}  // namespace lockstep::stacks
