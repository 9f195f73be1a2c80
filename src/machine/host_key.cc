#include "machine/host_key.h"

#include "base/text.h"
#include "cloud/key_pair.h"
#include "io/fd.h"
#include "machine/lease_files.h"
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
// 80 looks, 20 ms apart, plus ssh-keyscan itself: sshd may take a moment to reload.
constexpr int kLooks = 80;
constexpr int kLookEvery = 20;  // ms
constexpr std::chrono::seconds kScanPatience{5};

std::string key_words(const std::string& line) {
  const auto words = split(strip(line), ' ');
  return words.size() < 2 ? "" : words[0] + " " + words[1];
}

// Returns the key that sshd shows. Empty: sshd does not answer, or ssh-keyscan is missing.
std::string shown_key(const SshdPlace& sshd) {
  const auto said =
      proc::tool_output({"ssh-keyscan", "-T", "2", "-t", "ed25519", "-p", sshd.port, sshd.address},
                        proc::own_environment(), {.patience = kScanPatience});
  if (!said) return {};
  for (const std::string& line : split(said->out, '\n')) {
    const std::size_t space = line.find(' ');
    if (!line.starts_with('#') && space != std::string::npos) return line.substr(space + 1);
  }
  return {};
}

void reload_sshd() {
  // On SIGHUP sshd runs itself again and reads its keys.
  for (const pid_t pid : listening_sshds(all_processes()))
    kill(pid, SIGHUP);
}

bool is_shown(const SshdPlace& sshd, const std::string& line) {
  for (int look = 0; look < kLooks; ++look) {
    if (key_words(shown_key(sshd)) == key_words(line)) return true;
    poll(nullptr, 0, kLookEvery);
  }
  return false;
}

}  // namespace

Result<std::string> make_host_key() {
  LOCKSTEP_TRY_ASSIGN(const io::Fd lock, key_lock());
  LOCKSTEP_TRY_ASSIGN(const cloud::KeyPair pair, cloud::keep_key_pair(kNextPath, "lockstep-host"));
  return pair.public_line;
}

bool can_see_host_key(const SshdPlace& sshd) {
  return !sshd.address.empty() && !shown_key(sshd).empty();
}

Result<HostKey> show_host_key(const SshdPlace& sshd, bool sees) {
  // Two clients at once would restore each other's keys.
  LOCKSTEP_TRY_ASSIGN(const io::Fd lock, key_lock());
  const auto old_secret = io::read_file(kKeyPath, kMostKey);
  const auto old_line = io::read_file(std::string(kKeyPath) + ".pub", kMostKey);
  LOCKSTEP_TRY_ASSIGN(const cloud::KeyPair pair, cloud::keep_key_pair(kNextPath, "lockstep-host"));
  // The client has pinned this key already. A crash after this line leaves a machine that the
  // client still knows.
  LOCKSTEP_TRY(cloud::write_key_pair(kKeyPath, pair));
  reload_sshd();
  // Without ssh-keyscan the machine cannot see what sshd shows. Then the new key is assumed to be
  // in use.
  if (!sees || is_shown(sshd, pair.public_line)) {
    cloud::remove_key_pair(kNextPath);
    return HostKey{.public_line = pair.public_line, .fresh = true};
  }
  if (!old_secret || !old_line)
    return fail(Errc::unavailable, "sshd does not show the new host key");
  // Restore the old key: clients with its pin can still log in.
  LOCKSTEP_TRY(cloud::write_key_pair(kKeyPath, {*old_secret, std::string(strip(*old_line))}));
  reload_sshd();
  return HostKey{.public_line = std::string(strip(*old_line)),
                 .fresh = false,
                 .note = "sshd keeps the host key from user data"};
}

}  // namespace lockstep::machine
