#include "ssh/ssh_command.h"

#include "base/text.h"

#include <fmt/core.h>

namespace lockstep::ssh {
namespace {

// Quotes a path for a value of -o: ssh splits values at white space and expands percent signs.
std::string file_value(std::string path) {
  replace_all(path, "%", "%%");
  return "\"" + path + "\"";
}

void append_target(std::vector<std::string>& argv, const Target& target) {
  if (!target.key_path.empty()) argv.insert(argv.end(), {"-i", target.key_path});
  if (target.port) argv.insert(argv.end(), {"-p", std::to_string(*target.port)});
  if (target.user) argv.insert(argv.end(), {"-l", *target.user});
  argv.insert(argv.end(), {"--", target.host});
}

void append_option(std::vector<std::string>& argv, std::string text) {
  argv.insert(argv.end(), {"-o", std::move(text)});
}

// Options for a host with one known key. UpdateHostKeys=no: do not adopt further keys that the host
// offers. IdentitiesOnly=yes: offer only our key, because a server disconnects after a few keys of
// an agent.
void append_pinned(std::vector<std::string>& argv, const MasterSettings& settings) {
  for (const char* text : {"StrictHostKeyChecking=yes", "GlobalKnownHostsFile=/dev/null",
                           "UpdateHostKeys=no", "VerifyHostKeyDNS=no", "CheckHostIP=no",
                           "HostKeyAlgorithms=ssh-ed25519", "IdentitiesOnly=yes"})
    append_option(argv, text);
  append_option(argv, "UserKnownHostsFile=" +
                          (settings.pins.empty() ? "/dev/null" : file_value(settings.pins)));
}

void append_first_seen(std::vector<std::string>& argv, const Target& target,
                       const MasterSettings& settings) {
  const auto found = settings.trusts.find(target_key(target));
  const Trust trust = found == settings.trusts.end() ? Trust{} : found->second;
  // accept-new would accept a key of a type that no file has.
  append_option(argv,
                trust.strict ? "StrictHostKeyChecking=yes" : "StrictHostKeyChecking=accept-new");
  if (!trust.strict && settings.pins.empty()) return;  // ssh reads the user's own files by default
  std::vector<std::string> files;
  if (trust.strict)  // the global file is listed by name if its keys count
    append_option(argv, "GlobalKnownHostsFile=/dev/null");
  else  // ssh writes a new key into the first file
    files = {file_value(settings.pins), "~/.ssh/known_hosts", "~/.ssh/known_hosts2"};
  for (const std::string& file : trust.files)
    files.push_back(file_value(file));
  append_option(argv, "UserKnownHostsFile=" + (files.empty() ? "/dev/null" : join(files, " ")));
}

// Options that every connection needs: which host keys count, and how long to wait.
void append_trust(std::vector<std::string>& argv, const Target& target,
                  const MasterSettings& settings) {
  const auto option = [&argv](std::string text) { append_option(argv, std::move(text)); };
  if (target.host_keys == HostKeys::pinned)
    append_pinned(argv, settings);
  else
    append_first_seen(argv, target, settings);
  option(fmt::format("ConnectTimeout={}", settings.patience.count()));
  // ssh notices a dead connection within 15 s.
  option("ServerAliveInterval=5");
  option("ServerAliveCountMax=3");
}

// Options for connections without a user's session.
void append_rules(std::vector<std::string>& argv, const Target& target,
                  const MasterSettings& settings) {
  append_trust(argv, target, settings);
  const auto option = [&argv](std::string text) { append_option(argv, std::move(text)); };
  // The user's settings for interactive sessions with this host would be applied twice, or fail.
  option("ClearAllForwardings=yes");
  option("RemoteCommand=none");
  option("PermitLocalCommand=no");
  option("RequestTTY=no");
  // Without a terminal, a prompt would wait for ever.
  if (!settings.may_ask) option("BatchMode=yes");
}

Target hop_target(std::string_view text, const std::string& key_path) {
  Target hop = parse_target(text).value_or(Target{.host = std::string(text)});
  hop.key_path = key_path;
  return hop;
}

// Returns the ProxyCommand for a chain of jump hosts: "a,b" goes to a, then to b. ssh's own -J does
// not pass our options on, so it would refuse a jump host whose key is not known yet.
std::string proxy_command(std::string_view jumps, const MasterSettings& settings,
                          const std::string& key_path) {
  const std::size_t comma = jumps.rfind(',');
  const std::string_view last = comma == std::string_view::npos ? jumps : jumps.substr(comma + 1);
  const Target hop = hop_target(last, key_path);
  // The outer ssh expands %h and %p.
  std::vector<std::string> argv = {"ssh", "-x", "-S", "none", "-W", "[%h]:%p"};
  append_rules(argv, hop, settings);
  if (comma != std::string_view::npos) {
    std::string before = proxy_command(jumps.substr(0, comma), settings, key_path);
    // The outer command expands percent signs once more.
    replace_all(before, "%", "%%");
    append_option(argv, "ProxyCommand=" + std::move(before));
  }
  append_target(argv, hop);
  return shell_join(argv);
}

void append_way(std::vector<std::string>& argv, const Target& target,
                const MasterSettings& settings) {
  if (!target.jump.empty())
    append_option(argv, "ProxyCommand=" + proxy_command(target.jump, settings, target.key_path));
  append_target(argv, target);
}

}  // namespace

std::vector<Target> hosts_on_the_way(const Target& target) {
  std::vector<Target> hosts;
  if (!target.jump.empty())
    for (const std::string& hop : split(target.jump, ','))
      hosts.push_back(hop_target(hop, target.key_path));
  hosts.push_back(target);
  return hosts;
}

// A host may be both a target and the jump host of another target.
std::string target_key(const Target& target) {
  return fmt::format("{}:{}", target_text(target), target.port.value_or(0));
}

std::vector<std::string> look_up_command(const Target& target) {
  std::vector<std::string> argv = {"ssh", "-G"};
  append_target(argv, target);
  return argv;
}

std::vector<std::string> master_command(const Target& target, const MasterSettings& settings) {
  std::string socket = settings.socket;
  replace_all(socket, "%", "%%");
  // With -f ssh returns after the log-in, so exit code 0 means that the master runs.
  std::vector<std::string> argv = {"ssh", "-M", "-N", "-f", "-x", "-S", socket};
  append_option(argv, fmt::format("ControlPersist={}", settings.stay.count()));
  append_rules(argv, target, settings);
  append_way(argv, target, settings);
  return argv;
}

std::vector<std::string> probe_command(const Target& target, const MasterSettings& settings) {
  // The user's configuration must not bring in a master of its own.
  std::vector<std::string> argv = {"ssh", "-x", "-T", "-S", "none"};
  append_option(argv, "ControlMaster=no");
  append_rules(argv, target, settings);
  append_way(argv, target, settings);
  argv.emplace_back("true");
  return argv;
}

// If the master has ended by then, ssh connects anew with the same checks.
std::vector<std::string> login_command(const Target& target, const MasterSettings& settings,
                                       const std::vector<std::string>& words) {
  std::string socket = settings.socket;
  replace_all(socket, "%", "%%");
  std::vector<std::string> argv = {"ssh", "-S", socket};
  append_option(argv, "ControlMaster=no");
  append_trust(argv, target, settings);
  append_way(argv, target, settings);
  // After "--" ssh takes no more options. Dropping it is safe: no host's name begins with '-'
  // (target.h).
  argv.erase(argv.end() - 2);
  argv.insert(argv.end(), words.begin(), words.end());
  return argv;
}

}  // namespace lockstep::ssh
