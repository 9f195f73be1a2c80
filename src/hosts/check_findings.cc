#include "hosts/check_findings.h"

#include "base/text.h"
#include "hosts/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace lockstep::hosts {
namespace {

using Weight = Finding::Weight;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
// Below kHomeFull the disk counts as full: an install or a checkpoint soon fails with ENOSPC.
constexpr std::int64_t kHomeFull = 256 * kMiB;
constexpr std::int64_t kHomeNearlyFull = 2048 * kMiB;
constexpr std::int64_t kTmpFull = 64 * kMiB;
// Docker gives a container 64 MiB by default. Workers that share tensors through /dev/shm then die
// with SIGBUS.
constexpr std::int64_t kSmallShm = 256 * kMiB;
// DeepSpeed warns below this size.
constexpr std::int64_t kModestShm = 512 * kMiB;
constexpr std::int64_t kFewFiles = 1024;
// A few seconds hardly matter. From an hour on, TLS certificates look invalid, and file times make
// no sense there.
constexpr double kClockOffMs = 5'000;
constexpr double kClockFarOffMs = 3'600'000;

class Findings {
 public:
  // Hosts of a cluster often share a fault. Merge equal findings: the report then has a single line
  // for the fault.
  void add(Weight weight, std::string_view what, const std::string& node, std::string text,
           std::string cure) {
    for (Finding& known : findings_)
      if (known.what == what && known.text == text) return known.nodes.push_back(node);
    findings_.push_back({weight, what, {node}, std::move(text), std::move(cure)});
  }
  std::vector<Finding> take() {
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const Finding& a, const Finding& b) { return a.weight < b.weight; });
    return std::move(findings_);
  }

 private:
  std::vector<Finding> findings_;
};

// A file system without free inodes is as full as one without free bytes.
bool is_full(const host::Space& space, std::int64_t limit) {
  return space.free < limit || space.files_free == 0;
}

void look_at_home(const HostCheck& check, Findings& findings) {
  const host::Space& home = check.facts.home;
  const std::string path = printable(home.path);
  if (!home.there || !home.writable)
    findings.add(Weight::trouble, "home-not-writable", check.name,
                 fmt::format("the home {} can't be written to", path),
                 "check the folder's owner and mount options");
  else if (is_full(home, kHomeFull))
    findings.add(Weight::trouble, "home-full", check.name,
                 fmt::format("the disk of the home {} is full", path), "make room on it");
  else if (home.free < kHomeNearlyFull)
    findings.add(Weight::warning, "home-nearly-full", check.name,
                 fmt::format("the disk of the home {} is nearly full", path), "make room on it");
  // A noexec home breaks virtual environments: their python and compiled extensions lie below the
  // home.
  if (home.there && home.no_exec)
    findings.add(Weight::trouble, "home-noexec", check.name,
                 fmt::format("the home {} is mounted noexec, so programs installed there cannot "
                             "run",
                             path),
                 "mount it without noexec");
}

void look_at_tmp(const HostCheck& check, Findings& findings) {
  const host::Space& tmp = check.facts.tmp;
  if (!tmp.there || !tmp.writable)
    findings.add(Weight::trouble, "tmp-not-writable", check.name, "/tmp can't be written to",
                 "chmod 1777 /tmp, or mount another /tmp");
  else if (is_full(tmp, kTmpFull))
    findings.add(Weight::trouble, "tmp-full", check.name, "/tmp is full", "make room in it");
  // Programs that compile at run time often write code to the temporary folder and load the code
  // from there.
  if (tmp.there && tmp.no_exec)
    findings.add(Weight::trouble, "tmp-noexec", check.name,
                 "/tmp is mounted noexec, so code compiled there cannot run",
                 "mount /tmp without noexec, or set TMPDIR to a folder where programs may run");
  const host::Space& shm = check.facts.shm;
  if (!shm.there || !shm.writable)
    findings.add(Weight::trouble, "shm-missing", check.name,
                 "there is no /dev/shm to write to, through which workers share memory",
                 "mount a tmpfs there");
  else if (shm.total < kSmallShm || is_full(shm, kTmpFull / 4))
    findings.add(Weight::trouble, "shm-small", check.name,
                 fmt::format("/dev/shm has {} ({} free): workers that share memory crash",
                             memory_text(shm.total), memory_text(shm.free)),
                 "give the container --shm-size=8g, or: mount -o remount,size=8G /dev/shm");
  else if (shm.total < kModestShm)
    findings.add(Weight::warning, "shm-modest", check.name,
                 fmt::format("/dev/shm has {}, which is little for several workers with loaders",
                             memory_text(shm.total)),
                 "give the container --shm-size=8g, or: mount -o remount,size=8G /dev/shm");
}

std::string clock_text(double ahead_ms) {
  const double seconds = std::abs(ahead_ms) / 1000;
  const std::string much = seconds >= 3600 ? fmt::format("{:.1f} hours", seconds / 3600)
                                           : fmt::format("{:.0f} s", seconds);
  return fmt::format("its clock is {} {} ours", much, ahead_ms > 0 ? "ahead of" : "behind");
}

void look_at_limits(const HostCheck& check, Findings& findings) {
  // Every connection between ranks and every loader worker holds descriptors.
  if (check.facts.open_files < kFewFiles)
    findings.add(Weight::trouble, "few-open-files", check.name,
                 fmt::format("a process may have {} files open", check.facts.open_files),
                 "raise nofile in /etc/security/limits.conf");
  // The supervisor of a job runs in the session of the client's SSH connection, so logind counts
  // the supervisor among the processes of that session.
  if (check.facts.logout_kills)
    findings.add(Weight::trouble, "logout-kills", check.name,
                 "systemd kills a user's processes at logout (KillUserProcesses=yes): a job ends "
                 "soon after the client disconnects",
                 "in /etc/systemd/logind.conf set KillUserProcesses=no, or name the user in "
                 "KillExcludeUsers=; then systemctl restart systemd-logind");
  if (check.facts.python.path.empty() && check.facts.project_python.path.empty())
    findings.add(Weight::warning, "no-python", check.name,
                 "there is no python3 in PATH; steps and scripts that need Python fail",
                 "install python3");
  // Subtract the error of the measurement: a slow connection alone must not look like a wrong
  // clock.
  const double off = std::abs(check.clock_ahead_ms) - check.clock_error_ms;
  if (off > kClockOffMs)
    findings.add(
        off > kClockFarOffMs ? Weight::trouble : Weight::warning,
        off > kClockFarOffMs ? "clock-far-off" : "clock-off", check.name,
        clock_text(check.clock_ahead_ms) +
            (off > kClockFarOffMs ? ": certificate checks and file times go wrong there" : ""),
        "set the clock: timedatectl set-ntp true");
}

using Value = std::function<std::string(const HostCheck&)>;

// Adds a finding if the value differs between hosts. The text lists each value with its hosts:
// "x86_64 (gpus-0 to gpus-3), aarch64 (gpus-4)".
void look_for_difference(const std::vector<const HostCheck*>& checks, Weight weight,
                         std::string_view what, std::string_view words, std::string_view cure,
                         const Value& value, Findings& findings) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const HostCheck* check : checks) {
    const std::string here = value(*check);
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return group.first == here; });
    if (same != groups.end())
      same->second.push_back(check->name);
    else
      groups.push_back({here, {check->name}});
  }
  if (groups.size() < 2) return;
  std::vector<std::string> parts;
  parts.reserve(groups.size());
  for (const auto& [here, names] : groups)
    parts.push_back(fmt::format("{} ({})", printable(here), names_text(names)));
  const std::string text = fmt::format("{} differ: {}", words, join(parts, ", "));
  for (const HostCheck* check : checks)
    findings.add(weight, what, check->name, text, std::string(cure));
}

// Patch releases of Python are compatible, so only "3.11" of "3.11.4" is compared.
std::string minor_version(const std::string& version) {
  const auto parts = split(version, '.');
  return parts.size() < 2 ? version : parts[0] + "." + parts[1];
}

void compare(const std::vector<const HostCheck*>& checks, Findings& findings) {
  look_for_difference(
      checks, Weight::trouble, "arch-differs", "processors",
      "make a separate cluster for each kind of host",
      [](const HostCheck& check) { return check.facts.arch; }, findings);
  look_for_difference(
      checks, Weight::trouble, "gpus-differ", "numbers of GPUs",
      "choose hosts with --nodes, or give --nproc-per-node the smallest number",
      [](const HostCheck& check) { return std::to_string(check.facts.gpus.size()); }, findings);
  // A host without Python has a warning of its own already.
  std::vector<const HostCheck*> with_python;
  for (const HostCheck* check : checks)
    if (!check->facts.python.path.empty()) with_python.push_back(check);
  look_for_difference(
      with_python, Weight::trouble, "python-differs", "Python versions",
      "install the same version on all hosts",
      [](const HostCheck& check) { return minor_version(check.facts.python.version); }, findings);
  look_for_difference(
      checks, Weight::warning, "driver-differs", "versions of the GPU driver",
      "install the same version on all hosts",
      [](const HostCheck& check) {
        return check.facts.driver.empty() ? "none" : check.facts.driver;
      },
      findings);
}

// Two names of one machine would start two sets of workers on the same GPUs and ports.
void look_for_twins(const std::vector<const HostCheck*>& checks, Findings& findings) {
  std::map<std::string, std::vector<std::string>> names;
  for (const HostCheck* check : checks)
    names[check->facts.machine].push_back(check->name);
  for (const auto& [machine, twins] : names)
    for (const std::string& name : twins)
      if (twins.size() > 1)
        findings.add(Weight::trouble, "same-machine", name,
                     fmt::format("{} are the same machine", names_text(twins)),
                     "keep a single name in the cluster");
}

}  // namespace

std::vector<Finding> findings_of(const std::vector<HostCheck>& checks) {
  Findings findings;
  std::vector<const HostCheck*> reached;
  for (const HostCheck& check : checks) {
    if (!check.error.empty()) continue;
    reached.push_back(&check);
    look_at_home(check, findings);
    look_at_tmp(check, findings);
    look_at_limits(check, findings);
  }
  compare(reached, findings);
  look_for_twins(reached, findings);
  return findings.take();
}

}  // namespace lockstep::hosts
