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

// Why it failed: in its exit code and the last words on its standard error.
std::string rsync_trouble(int code, std::string_view said);

}  // namespace lockstep::sync
