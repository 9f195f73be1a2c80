#include "slurm/bad_node_file.h"

#include "io/fd.h"
#include "io/file_lock.h"
#include "io/own_folders.h"
#include "io/replace_file.h"

namespace lockstep::slurm {
namespace {

std::string path_in(const std::string& folder) {
  return folder + "/bad-nodes";
}

// Takes the lock that keeps two processes from overwriting each other's failures. Locks a file
// beside the failures, because keep_record() replaces their file.
Result<io::FileLock> lock(const std::string& folder) {
  LOCKSTEP_TRY(io::make_folders(folder));
  return io::FileLock::take(path_in(folder) + ".lock", io::FileLock::IfHeld::wait);
}

Status write_failures(const std::string& folder, const std::vector<NodeFailure>& failures) {
  std::string text;
  for (const NodeFailure& each : failures)
    text += failure_line(each);
  return io::keep_record(path_in(folder), text);
}

}  // namespace

Result<std::vector<NodeFailure>> known_failures(const std::string& folder) {
  // kMostFailures lines with three fields of 200 bytes fit. Bounds memory if the file is damaged.
  constexpr std::size_t kMostBytes = 8UL << 20;
  const auto text = io::read_file(path_in(folder), kMostBytes);
  if (!text && text.error().code == Errc::not_found) return std::vector<NodeFailure>();
  if (!text) return Failure(text.error());
  return parse_failures(*text);
}

Status note_bad_node(const std::string& folder, const NodeFailure& failure) {
  LOCKSTEP_TRY_ASSIGN(const io::FileLock held, lock(folder));
  LOCKSTEP_TRY_ASSIGN(const auto known, known_failures(folder));
  auto kept = still_needed(known, failure.cluster, {}, failure.time);
  kept.push_back(failure);
  return write_failures(folder, kept);
}

Result<std::vector<BadNode>> known_bad_nodes(const std::string& folder,
                                             const std::string& slurm_cluster, std::int64_t now) {
  LOCKSTEP_TRY_ASSIGN(const auto failures, known_failures(folder));
  return bad_nodes(failures, slurm_cluster, now);
}

Status forget_bad_node(const std::string& folder, const std::string& slurm_cluster,
                       const std::string& node, std::int64_t now) {
  LOCKSTEP_TRY_ASSIGN(const io::FileLock held, lock(folder));
  LOCKSTEP_TRY_ASSIGN(const auto known, known_failures(folder));
  LOCKSTEP_TRY(check_bad(bad_nodes(known, slurm_cluster, now), node));
  return write_failures(folder, still_needed(known, slurm_cluster, {node}, now));
}

}  // namespace lockstep::slurm
