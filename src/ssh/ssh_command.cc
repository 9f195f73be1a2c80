#include "ssh/ssh_command.h"

#include "base/text.h"

#include <fmt/core.h>

namespace lockstep::ssh {
namespace {

// For a value of -o: ssh splits it at white space and expands percent signs and tildes.
std::string file_value(std::string path) {
  replace_all(path, "%", "%%");
  return "\"" + path + "\"";
}

void append_target(std::vector<std::string>& argv, const Target& target) {
  if (!target.key_path.empty()) argv.insert(argv.end(), {"-i", target.key_path});
  if (!target.jump.empty()) argv.insert(argv.end(), {"-J", target.jump});
  if (target.port) argv.insert(argv.end(), {"-p", std::to_string(*target.port)});
  if (target.user) argv.insert(argv.end(), {"-l", *target.user});
  argv.insert(argv.end(), {"--", target.host});
}

}  // namespace

std::vector<std::string> master_command(const Target& target, const MasterSettings& settings) {
  std::string socket = settings.socket;
  replace_all(socket, "%", "%%");
  std::vector<std::string> argv = {"ssh", "-M", "-N", "-f", "-x", "-S", socket};
  const auto option = [&argv](std::string text) {
    argv.insert(argv.end(), {"-o", std::move(text)});
  };
  option(fmt::format("ControlPersist={}", settings.stay.count()));
  option("StrictHostKeyChecking=accept-new");
  if (!settings.pins.empty())
    option(fmt::format("UserKnownHostsFile={} ~/.ssh/known_hosts ~/.ssh/known_hosts2",
                       file_value(settings.pins)));
  option(fmt::format("ConnectTimeout={}", settings.patience.count()));
  // A connection that was cut is noticed within 15 s.
  option("ServerAliveInterval=5");
  option("ServerAliveCountMax=3");
  // What the user has for this host's interactive sessions would be done twice, or fail.
  option("ClearAllForwardings=yes");
  option("RemoteCommand=none");
  option("PermitLocalCommand=no");
  option("RequestTTY=no");
  if (!settings.may_ask) option("BatchMode=yes");
  append_target(argv, target);
  return argv;
}

std::vector<std::string> login_command(const Target& target, const std::string& socket) {
  std::vector<std::string> argv = {"ssh", "-S", socket};
  append_target(argv, target);
  return argv;
}

}  // namespace lockstep::ssh
