// rsync's command lines and messages. Builds argv and reads text; starts nothing.
#pragma once

#include "sync/manifest.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

struct RsyncSettings {
  std::string shell;   // for --rsh: a program, with arguments, called as "SHELL HOST COMMAND ARGS"
  std::string place;   // absolute path on the host
  std::string drafts;  // absolute path on the host for files in transfer; "": beside the files
};

// Returns the argv that sends files from the current folder. Its stdin is rsync_input(). Prints the
// number of bytes sent for each file.
std::vector<std::string> rsync_command(const RsyncSettings& settings);
// Returns the paths, each with a NUL behind.
std::string rsync_input(const Manifest& needed);

// Returns true if rsync is installed on this machine.
bool has_rsync();

// Returns true for variables with an influence on rsync's work or output.
bool changes_rsync(std::string_view variable);

// Returns the ssh command for rsync, which only uses the master at the socket. nullopt: rsync would
// split the path wrongly.
std::optional<std::string> ssh_for_rsync(const std::string& socket);

// Returns true if another connection might work: the login shell prints text, or the master is
// gone.
bool may_try_another_shell(int code, std::string_view said);

// Returns the cause of rsync's failure, from its exit code and stderr.
std::string rsync_trouble(int code, std::string_view said);

}  // namespace lockstep::sync
