#include "cloud/user_data.h"

#include "base/text.h"
#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud {
namespace {

constexpr std::size_t kMostUserData = 4UL << 10;

// Quotes a text as JSON does, which YAML readers accept.
std::string yaml_text(std::string_view text) {
  return codec::print_json(nlohmann::json(std::string(text)), codec::JsonText::ascii);
}

std::string indented(std::string_view text, std::string_view by) {
  std::string out;
  for (const std::string& line : split(text.substr(0, text.find_last_not_of('\n') + 1), '\n'))
    out += fmt::format("{}{}\n", by, line);
  return out;
}

bool is_public_line(std::string_view text) {
  return text.starts_with("ssh-") &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Refuses anything but keys: cloud-init or the shell would read other text as commands or settings.
Status check_keys(const FirstBoot& boot) {
  const auto is_text = [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; };
  const std::string& secret = boot.host_key.private_text;
  if (is_public_line(boot.user_public_key) && is_public_line(boot.host_key.public_line) &&
      secret.starts_with("-----BEGIN ") && std::all_of(secret.begin(), secret.end(), is_text))
    return {};
  return fail(Errc::internal, "user data got a text that is not a key");
}

Result<std::string> bounded(std::string text) {
  if (text.size() > kMostUserData)
    return fail(Errc::invalid_input, fmt::format("user data takes {} bytes, and may take {}",
                                                 text.size(), kMostUserData));
  return text;
}

}  // namespace

Result<std::string> cloud_config(const FirstBoot& boot) {
  LOCKSTEP_TRY(check_keys(boot));
  // bootcmd runs before the network is up, so the timer works even if the machine never connects.
  const std::string guard = arm_script(kBootGuard, boot.guard_s, kPoweroff);
  return bounded(fmt::format(
      "#cloud-config\n"
      "bootcmd:\n"
      "  - [sh, -c, {}]\n"
      "ssh_deletekeys: true\n"
      "ssh_keys:\n"
      "  ed25519_private: |\n{}"
      "  ed25519_public: {}\n"
      "no_ssh_fingerprints: true\n"
      "ssh:\n"
      "  emit_keys_to_console: false\n"
      "ssh_pwauth: false\n"
      "users: [default]\n"
      "ssh_authorized_keys:\n"
      "  - {}\n"
      "write_files:\n"
      "  - path: /etc/ssh/sshd_config.d/10-lockstep.conf\n"
      "    content: \"PasswordAuthentication no\\nKbdInteractiveAuthentication no\\n\"\n",
      yaml_text(guard), indented(boot.host_key.private_text, "    "),
      yaml_text(boot.host_key.public_line), yaml_text(boot.user_public_key)));
}

Result<std::string> container_start(const FirstBoot& boot, const MachineEnding& ending) {
  LOCKSTEP_TRY(check_keys(boot));
  const std::string& secret = boot.host_key.private_text;
  return bounded(
      // Remove the script first, since it contains the host key. Remove the image's own host keys,
      // so that sshd shows only ours.
      fmt::format("rm -f /tmp/lockstep-start\n"
                  "umask 077\n"
                  "{}"
                  "mkdir -p /run/sshd /etc/ssh \"$HOME/.ssh\"\n"
                  "chmod 755 /run/sshd\n"
                  "echo {} >>\"$HOME/.ssh/authorized_keys\"\n"
                  "rm -f /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub\n"
                  "cat >/etc/ssh/ssh_host_ed25519_key <<'LOCKSTEP'\n{}LOCKSTEP\n"
                  "echo {} >/etc/ssh/ssh_host_ed25519_key.pub\n"
                  "[ -x /usr/sbin/sshd ] || {{ apt-get update && DEBIAN_FRONTEND=noninteractive "
                  "apt-get install -y --no-install-recommends openssh-server; }}\n"
                  "exec /usr/sbin/sshd -D -e -o PidFile=/run/sshd.pid "
                  "-o HostKey=/etc/ssh/ssh_host_ed25519_key -o PasswordAuthentication=no "
                  "-o KbdInteractiveAuthentication=no -o PermitRootLogin=prohibit-password\n",
                  arm_script(kBootGuard, boot.guard_s, ending), shell_quote(boot.user_public_key),
                  secret, shell_quote(boot.host_key.public_line)));
}

}  // namespace lockstep::cloud
