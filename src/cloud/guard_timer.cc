#include "cloud/guard_timer.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud {
namespace {

constexpr std::int64_t kLook = 2;  // seconds between a sleeping shell's looks at its marker

}  // namespace

std::string_view ending_name(MachineEnding ending) {
  return ending == MachineEnding::poweroff ? "poweroff" : "runpod";
}

std::string end_command(MachineEnding ending) {
  if (ending == MachineEnding::poweroff) return "poweroff || shutdown -P now || halt -p";
  return "runpodctl remove pod \"$RUNPOD_POD_ID\"";
}

// --no-block, and no default dependencies: at first boot systemd is still on its way to what a
// timer waits for by default, and would wait for us meanwhile. The shell has no single quote in it.
std::string arm_script(std::string_view name, std::int64_t seconds, MachineEnding ending) {
  seconds = std::max<std::int64_t>(seconds, 1);
  const std::string sleeper = fmt::format(
      "n={}; while [ $n -gt 0 ]; do sleep {}; [ -e /run/{} ] || exit 0; n=$((n-1)); done; "
      "while :; do {}; sleep 5; done",
      (seconds + kLook - 1) / kLook, std::min(kLook, seconds), name, end_command(ending));
  std::string script =
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH; export PATH\n";
  const std::string sleeps =
      fmt::format(": >/run/{}; setsid sh -c '{}' </dev/null >/dev/null 2>&1 &", name, sleeper);
  // Units don't have a container's environment, and containers have no systemd.
  if (ending != MachineEnding::poweroff) return script + sleeps + "\n";
  script += fmt::format(
      "if [ -d /run/systemd/system ] && systemd-run --no-block --unit={} --on-active={} "
      "--timer-property=AccuracySec=1s --timer-property=DefaultDependencies=no "
      "-p DefaultDependencies=no systemctl poweroff; then :; else {}\nfi\n",
      name, seconds, sleeps);
  return script;
}

std::string disarm_script(std::string_view name) {
  return fmt::format(
      "rm -f /run/{0}\n"
      "[ ! -d /run/systemd/system ] || systemctl stop {0}.timer 2>/dev/null || :\n",
      name);
}

}  // namespace lockstep::cloud
