#include "cloud/guard_timer.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud {
namespace {

constexpr std::int64_t kLook = 2;  // seconds; a sleeping shell checks its marker so often

}  // namespace

// --no-block and no default dependencies, because this script runs during boot: by default the
// timer would wait for basic.target, and systemd would wait for this script meanwhile. The sleeper
// must have no single quotes, since `sh -c` quotes it with them.
std::string arm_script(std::string_view name, std::int64_t seconds, const MachineEnding& ending) {
  // A time that has passed already must still arm a timer, which then fires at once.
  seconds = std::max<std::int64_t>(seconds, 1);
  const std::string sleeper = fmt::format(
      "n={}; while [ $n -gt 0 ]; do sleep {}; [ -e /run/{} ] || exit 0; n=$((n-1)); done; "
      "while :; do {}; sleep 5; done",
      (seconds + kLook - 1) / kLook, std::min(kLook, seconds), name, ending.command);
  std::string script =
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH; export PATH\n";
  const std::string sleeps =
      fmt::format(": >/run/{}; setsid sh -c '{}' </dev/null >/dev/null 2>&1 &", name, sleeper);
  // A systemd unit would lack the container's variables, and containers run no systemd.
  if (!ending.variables.empty()) return script + sleeps + "\n";
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
