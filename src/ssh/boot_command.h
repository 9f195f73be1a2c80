// The few words of POSIX shell by which the binary comes to life on a host: begin it if it is
// there, else say what the host is; take it in. They pass through the user's login shell, which may
// be bash, dash, zsh, fish or csh: one line in single quotes, without a quote, a backslash or an
// exclamation mark in it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::ssh {

// What the binary is called on hosts: by its content.
struct BinaryName {
  std::string version;  // "0.1.0"
  std::string id;       // hexadecimal digits
  // Who sends it, hexadecimal digits: the part that an interrupted push leaves is its own.
  std::string client = {};
};

// Where the binary lies, below the home there: ".cache/lockstep/bin/lockstep-VERSION-ID".
std::string remote_path(const BinaryName& name);

// Whether what is started over the link may still run once the link is over.
enum class Commands { end_with_us, may_outlive_us };

// Becomes `lockstep link`, or says that the binary is not there (parse_absent) and ends.
std::string boot_command(const BinaryName& name, Commands commands = Commands::end_with_us);

struct Absent {
  std::string system;         // uname -s: "Linux"
  std::string machine;        // uname -m: "x86_64"
  std::uint64_t partial = 0;  // bytes of it that an earlier push left
};
std::optional<Absent> parse_absent(std::string_view output);

struct PushFacts {
  BinaryName name;
  std::string sha256;       // of the binary, hexadecimal
  std::uint64_t size = 0;   // of what is pushed, all of it
  bool compressed = false;  // by gzip
  bool resumes = false;     // what is on stdin goes behind the part that is there
};
// Takes the binary from stdin, checks it and puts it in place at once.
std::string push_command(const PushFacts& facts);

enum class Pushed {
  done,
  no_exec,   // it lies there and may not be run: the file system is mounted noexec
  cut,       // a part came
  corrupt,   // it is not what was sent
  no_space,  // it could not be written
  no_home,   // its folder could not be made
};
// nullopt: the command did not come as far as to say.
std::optional<Pushed> parse_pushed(std::string_view output);

}  // namespace lockstep::ssh
