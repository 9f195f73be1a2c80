#include "machine/host_key.h"

#include "base/text.h"
#include "cloud/key_pair.h"
#include "io/fd.h"
#include "machine/sessions.h"
#include "proc/tool_output.h"

#include <poll.h>
#include <signal.h>

#include <chrono>
#include <vector>

namespace lockstep::machine {
namespace {

constexpr const char* kKeyPath = "/etc/ssh/ssh_host_ed25519_key";
constexpr const char* kNextPath = "/etc/ssh/lockstep_next_host_key";
constexpr std::size_t kMostKey = 16UL << 10;
constexpr int kLooks = 80;
constexpr int kLookEvery = 20;  // ms
constexpr std::chrono::seconds kScanPatience{5};

std::string key_words(const std::string& line) {
  const auto words = split(strip(line), ' ');
  return words.size() < 2 ? "" : words[0] + " " + words[1];
}

// What sshd shows; empty: it does not answer, or there is no ssh-keyscan.
std::string shown_key(const std::string& address, const std::string& port) {
  const auto said =
      proc::tool_output({"ssh-keyscan", "-T", "2", "-t", "ed25519", "-p", port, address},
                        proc::own_environment(), {.patience = kScanPatience});
  if (!said) return {};
  for (const std::string& line : split(said->out, '\n')) {
    const std::size_t space = line.find(' ');
    if (!line.starts_with('#') && space != std::string::npos) return line.substr(space + 1);
  }
  return {};
}

void reload_sshd() {
  for (const pid_t pid : listening_sshds(all_processes()))
    kill(pid, SIGHUP);
}

bool is_shown(const std::string& address, const std::string& port, const std::string& line) {
  for (int look = 0; look < kLooks; ++look) {
    if (key_words(shown_key(address, port)) == key_words(line)) return true;
    poll(nullptr, 0, kLookEvery);
  }
  return false;
}

}  // namespace

Result<std::string> make_host_key() {
  LOCKSTEP_TRY_ASSIGN(const cloud::KeyPair pair, cloud::keep_key_pair(kNextPath, "lockstep-host"));
  return pair.public_line;
}

Result<HostKey> show_host_key(const std::string& address, const std::string& port) {
  const auto old_secret = io::read_file(kKeyPath, kMostKey);
  const auto old_line = io::read_file(std::string(kKeyPath) + ".pub", kMostKey);
  LOCKSTEP_TRY_ASSIGN(const cloud::KeyPair pair, cloud::keep_key_pair(kNextPath, "lockstep-host"));
  const bool can_look = !address.empty() && !shown_key(address, port).empty();
  LOCKSTEP_TRY(cloud::write_key_pair(kKeyPath, pair));
  reload_sshd();
  if (!can_look || is_shown(address, port, pair.public_line)) {
    cloud::remove_key_pair(kNextPath);
    return HostKey{.public_line = pair.public_line, .fresh = true};
  }
  if (!old_secret || !old_line)
    return fail(Errc::unavailable, "sshd does not show the fresh host key that it was given");
  LOCKSTEP_TRY(cloud::write_key_pair(kKeyPath, {*old_secret, std::string(strip(*old_line))}));
  reload_sshd();
  return HostKey{.public_line = std::string(strip(*old_line)),
                 .fresh = false,
                 .note = "sshd keeps the host key that user data has carried"};
}

}  // namespace lockstep::machine
