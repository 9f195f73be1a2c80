// Reads and replaces last-runs.json.
#include "agent/past_run_file.h"

#include "io/digest.h"
#include "io/fd.h"
#include "io/file_system.h"
#include "io/own_folders.h"
#include "io/replace_file.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>

namespace lockstep::agent {

std::string past_run_key(const launch::LaunchConfig& config) {
  std::error_code failed;
  const auto folder = std::filesystem::current_path(failed);
  if (failed) return {};
  io::Digest digest;
  digest.add(folder.native());
  digest.add(fmt::format("{}:{}x{}", config.min_nodes, config.max_nodes, config.nproc));
  for (const std::string& word : config.command)
    digest.add(word);
  return digest.hex().substr(0, 32);
}

std::optional<PastRun> note_past_run(const PastRun& run) {
  const std::string folder = io::state_folder();
  // A user without a home would get a folder in "/".
  if (run.key.empty() || folder.starts_with("/.local/")) return std::nullopt;
  const std::string path = folder + "/last-runs.json";
  if (!io::is_local_without_asking(path) || !io::make_folders(folder)) return std::nullopt;
  const auto text = io::read_file(path, kMostPastRunBytes);
  std::vector<PastRun> runs = read_past_runs(text ? *text : "");
  auto last = replace_past_run(runs, run);
  // Without a sync, which could wait for a busy disk. A run that cannot be kept is no fault of the
  // job.
  (void)io::replace_file(path, print_past_runs(runs));
  return last;
}

}  // namespace lockstep::agent
