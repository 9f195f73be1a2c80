#include "ssh/find_trusts.h"

#include "io/fd.h"
#include "io/own_folders.h"
#include "proc/tool_output.h"
#include "ssh/known_keys.h"
#include "ssh/pins.h"
#include "ssh/private_key.h"
#include "ssh/ssh_environment.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace lockstep::ssh {
namespace {

constexpr std::size_t kMostFile = 16UL << 20;

// Returns the pin files of all clusters.
std::vector<std::string> all_pins() {
  std::vector<std::string> files;
  const std::filesystem::path folder = io::state_folder();
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(kPinsPrefix)) files.push_back((folder / name).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> locked_among(const std::vector<std::string>& identities) {
  std::vector<std::string> locked;
  for (const std::string& file : identities) {
    const auto text = io::read_file(file);
    if (text && needs_passphrase(*text)) locked.push_back(file);
  }
  return locked;
}

// Also notes the locked keys of the host. The target is asked about last, so its keys remain.
Result<Trust> find_trust(const Target& target, MasterSettings& settings) {
  const auto told =
      // `ssh -G` prints the settings that ssh would use. Only ssh itself knows all rules of its
      // configuration files.
      proc::tool_output(look_up_command(target), ssh_environment(proc::own_environment()));
  if (!told && told.error().code == Errc::timeout) return Failure(told.error());
  if (!told) return Trust{};  // no ssh: the log-in reports that
  const LookUp look_up = parse_look_up(told->out, io::home_folder());
  if (!told->exit.ok() || look_up.name.empty()) return Trust{};  // the log-in reports what is wrong
  settings.locked_keys = locked_among(look_up.identities);
  const std::string& pins = settings.pins;
  std::vector<std::string> files = all_pins();
  if (!pins.empty() && std::find(files.begin(), files.end(), pins) == files.end())
    files.push_back(pins);
  files.insert(files.end(), look_up.files.begin(), look_up.files.end());
  std::vector<KnownKeys> known;
  for (const std::string& file : files) {
    const auto text = io::read_file(file, kMostFile);
    if (text)
      known.push_back(
          {file, known_keys(*text, look_up.name), has_marked_line(*text, look_up.name)});
  }
  return trust_in(known, look_up.name);
}

}  // namespace

Status find_trusts(const Target& target, MasterSettings& settings) {
  for (const Target& each : hosts_on_the_way(target)) {
    // A pinned host is checked against the pins only.
    if (each.host_keys == HostKeys::pinned) continue;
    auto trust = find_trust(each, settings);
    if (!trust) {
      Error error = std::move(trust).error();
      return Failure(each == target ? std::move(error)
                                    : std::move(error).within(target_text(each)));
    }
    settings.trusts[target_key(each)] = std::move(*trust);
  }
  return {};
}

}  // namespace lockstep::ssh
