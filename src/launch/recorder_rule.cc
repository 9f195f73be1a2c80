// Decides whether workers are asked for their flight recorders, and by which variables.
#include "launch/rules.h"

#include <fmt/core.h>

#include <string_view>

namespace lockstep::launch {
namespace {

constexpr std::string_view kPipe = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";
constexpr std::string_view kDump = "TORCH_FR_DUMP_TEMP_FILE";
constexpr std::string_view kOldDump = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE";
constexpr std::string_view kSize = "TORCH_FR_BUFFER_SIZE";
constexpr std::string_view kOldSize = "TORCH_NCCL_TRACE_BUFFER_SIZE";

// Returns why recorders are not asked. "": they are.
std::string reason_against(const RawOptions& raw, const Facts& facts, const LaunchConfig& config) {
  if (config.hang.after == HangConfig::After::never) return "--hang-after off";
  // torchrun's name promises torchrun's environment.
  if (raw.called_torchrun || raw.legacy_launch) return "as torchrun";
  if (config.logs.disabled) return "no log directory";
  // The user's own dumps go where the user wants them.
  for (const std::string_view name : {kPipe, kDump, kOldDump})
    if (facts.env(std::string(name))) return fmt::format("{} is set", name);
  for (const std::string_view name : {kSize, kOldSize})
    if (facts.env(std::string(name)) == "0") return fmt::format("{} is 0", name);
  return {};
}

}  // namespace

void apply_recorder(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  RecorderConfig& recorder = config.recorder;
  recorder.off = reason_against(raw, facts, config);
  if (raw.aid && !recorder.off.empty())
    config.warnings.push_back(fmt::format("--aid has no effect: {}", recorder.off));
  if (!recorder.off.empty()) return;
  recorder.aid = raw.aid;
  const auto add = [&](std::string_view name, std::string_view value, bool in_folder) {
    if (!facts.env(std::string(name)))
      recorder.variables.push_back({std::string(name), std::string(value), in_folder});
  };
  add(kPipe, "rank_", true);
  add(kDump, "trace_rank_", true);
  if (facts.env(std::string(kOldSize))) {
    // The name before PyTorch 2.9. Later versions warn of this name at the first dump.
    add(kOldDump, "trace_rank_", true);
    // Versions that need the old name of the size read the pipe only every 8 minutes without this.
    add("TORCH_NCCL_DUMP_ON_TIMEOUT", "1", false);
  } else {
    // PyTorch's own default. The pipe is opened only if a size is given. The old name must not be
    // set here: PyTorch 2.14 warns of it at the start of each rank, also with gloo.
    add(kSize, "2000", false);
  }
  // A dump with stacks needs the GIL, which a hanging rank may hold.
  add("TORCH_INCLUDE_STACK_TRACE", "0", false);
}

}  // namespace lockstep::launch
