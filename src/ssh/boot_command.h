// The few words of POSIX shell for starting the binary on a host: run it if present, else report
// the host's system, then receive the binary. The words pass through the user's login shell, which
// may be bash, dash, zsh, fish or csh. So a command is one line in single quotes, without quotes,
// backslashes or exclamation marks inside. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::ssh {

// The binary's name on hosts, made from its content.
struct BinaryName {
  std::string version;  // "0.1.0"
  std::string id;       // hexadecimal digits
  // The client, in hexadecimal digits. Part of the names of unfinished files: each client resumes
  // only its own push.
  std::string client = {};
};

// Returns the binary's path relative to the host's home: ".cache/lockstep/bin/lockstep-VERSION-ID".
std::string remote_path(const BinaryName& name);

// Whether commands started over the link may keep running after the link ends.
enum class Commands { end_with_us, may_outlive_us };

// Returns the command for becoming `lockstep link`. Without the binary it reports that (see
// parse_absent()) and exits.
std::string boot_command(const BinaryName& name, Commands commands = Commands::end_with_us);

struct Absent {
  std::string system;         // uname -s: "Linux"
  std::string machine;        // uname -m: "x86_64"
  std::uint64_t partial = 0;  // bytes that an earlier push of this client left
};
// Returns the boot command's report of a missing binary, or nullopt.
std::optional<Absent> parse_absent(std::string_view output);

struct PushFacts {
  BinaryName name;
  std::string sha256;       // of the binary, hexadecimal
  std::uint64_t size = 0;   // bytes of the whole file that is pushed
  bool compressed = false;  // by gzip
  bool resumes = false;     // stdin continues the part that is already on the host
};
// Returns the command for receiving the binary: reads stdin, checks size and digest, and renames
// the file to its place.
std::string push_command(const PushFacts& facts);

enum class Pushed {
  done,
  no_exec,   // written, but the file system is mounted noexec
  cut,       // only a part arrived
  corrupt,   // the content differs from what was sent
  no_space,  // writing failed
  no_home,   // its folder cannot be made
};
// nullopt: the command ended before it could report.
std::optional<Pushed> parse_pushed(std::string_view output);

}  // namespace lockstep::ssh
