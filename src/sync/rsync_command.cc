#include "sync/rsync_command.h"

#include "base/exit_codes.h"
#include "base/text.h"
#include "proc/find_in_path.h"
#include "proc/spawn.h"

#include <fmt/core.h>

namespace lockstep::sync {
namespace {}  // namespace

std::vector<std::string> rsync_command(const RsyncSettings& settings) {
  std::vector<std::string> argv = {
      "rsync",
      "--links",
      "--times",
      "--omit-dir-times",
      // Without --perms the host's umask decides all permissions but the execute bits.
      "--executability",
      // Keeps paths with spaces whole on every version of rsync.
      "--protect-args",
      "--files-from=-",
      "--from0",
      "--out-format=%b",
      "--rsh=" + settings.shell,
  };
  if (!settings.drafts.empty()) argv.push_back("--temp-dir=" + settings.drafts);
  argv.insert(argv.end(), {"--", "./", "host:" + settings.place + "/"});
  return argv;
}

std::string rsync_input(const Manifest& needed) {
  std::string input;
  for (const Entry& entry : needed) {
    // Without "./", rsync takes a line that begins with '#' or ';' as a comment.
    input += "./" + entry.path;
    input.push_back('\0');
  }
  return input;
}

bool has_rsync() {
  return proc::find_in_path("rsync").has_value();
}

bool changes_rsync(std::string_view variable) {
  // RSYNC_RSH and the like, and the language of the messages that we read.
  return variable.starts_with("RSYNC_") || variable.starts_with("LC_") ||
         variable.starts_with("LANG");
}

std::optional<std::string> ssh_for_rsync(const std::string& socket) {
  if (socket.find_first_of("'%") != std::string::npos) return std::nullopt;
  // A session of a running master needs none of the user's settings. ProxyCommand=false keeps ssh
  // from opening a new connection, without those settings, if the master is gone.
  return "ssh -F none -x -T -a -S '" + socket + "' -o BatchMode=yes -o ProxyCommand=false";
}

bool may_try_another_shell(int code, std::string_view said) {
  return code == kExitNotReached || said.find("is your shell clean") != std::string_view::npos;
}

std::string rsync_trouble(int code, std::string_view said) {
  std::string why;
  for (const std::string& line : split(said, '\n')) {
    const std::string_view text = strip(line);
    // rsync's last line only sums up the lines before.
    if (text.empty() || text.starts_with("rsync error:")) continue;
    if (why.empty() || text.find("No space left") != std::string_view::npos) why = printable(text);
  }
  if (code == kExitNotFound && why.empty()) why = "rsync is not installed there";
  if (why.empty()) return fmt::format("rsync ended with {}", code);
  return why;
}

}  // namespace lockstep::sync
