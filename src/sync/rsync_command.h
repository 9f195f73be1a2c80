// The command lines of rsync, and what it says. Argv out, text in, no spawning.
#pragma once

#include "sync/manifest.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

struct RsyncSettings {
  std::string shell;   // the program that takes "HOST COMMAND ARGS", with its arguments, for -e
  std::string place;   // absolute, on the host
  std::string drafts;  // absolute, on the host, for files that are not whole yet; "": beside them
};

// Sends files of the folder in which it is started; their paths are its input, each with a NUL
// behind. Prints the bytes that it sent of each.
std::vector<std::string> rsync_command(const RsyncSettings& settings);
std::string rsync_input(const Manifest& needed);

// Whether this machine has it.
bool has_rsync();

// Variables of ours that would change what rsync does.
bool changes_rsync(std::string_view variable);

// ssh as rsync starts it: through the master that listens at the socket, or not at all. nullopt: a
// path that rsync would take apart.
std::optional<std::string> ssh_for_rsync(const std::string& socket);

// Whether another way to the host could help: its login shell talks, or the master is gone.
bool may_try_another_shell(int code, std::string_view said);

// Why it failed: in its exit code and the last words on its standard error.
std::string rsync_trouble(int code, std::string_view said);

}  // namespace lockstep::sync
