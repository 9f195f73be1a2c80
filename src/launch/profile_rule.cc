// Decides whether workers ask for profiles, and by which variables.
#include "launch/rules.h"

#include <fmt/core.h>

#include <string_view>

namespace lockstep::launch {

void apply_profile(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  ProfileConfig& profile = config.profile;
  // `lockstep submit` passes --profile to sbatch, which has an option of that name.
  constexpr const char* kVariable = "LOCKSTEP_PROFILE";
  if (!raw.profile && facts.env(kVariable) != "1") return;
  if (!raw.profile) config.origins["profile"] = {Origin::Kind::variable, kVariable};
  constexpr std::string_view kDaemon = "KINETO_USE_DAEMON";
  constexpr std::string_view kSockets = "KINETO_IPC_SOCKET_DIR";
  // The user's own daemon gives the orders.
  for (const std::string_view name : {kDaemon, kSockets})
    if (facts.env(std::string(name))) profile.off = fmt::format("{} is set", name);
  profile.wanted = profile.off.empty();
  if (!profile.wanted) {
    config.warnings.push_back(fmt::format("--profile has no effect: {}", profile.off));
    return;
  }
  // Kineto of 2026 writes a trace on demand only below this folder, which is /tmp by default.
  constexpr std::string_view kTraces = "KINETO_ONDEMAND_TRACE_DIR";
  profile.variables = {{std::string(kDaemon), "1"}, {std::string(kSockets), ""}};
  if (!facts.env(std::string(kTraces)))
    profile.variables.push_back({std::string(kTraces), std::string(kProfileTraces)});
  profile.place = facts.env("LOCKSTEP_PROFILE_PLACE").value_or("");
}

}  // namespace lockstep::launch
