// The binary for hosts: the running one, or one for another architecture beside it, with a name
// made from its content, and compressed for sending.
#pragma once

#include "base/error.h"
#include "ssh/boot_command.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::ssh {

struct Binary {
  std::string path;
  BinaryName name;
};

// Returns the binary for a host's `uname -m`, which may be any text. For another architecture it is
// a file `lockstep-MACHINE` beside this binary, or in $XDG_DATA_HOME/lockstep. not_found: the
// machine is not in the closed list of known names, or there is no such file.
Result<Binary> binary_for(std::string_view machine);
// Returns the running binary itself.
Result<Binary> own_binary();

// The file that a push sends. The compressed form is cached in $XDG_CACHE_HOME/lockstep/push. If
// gzip is missing or fails, the push sends the binary itself.
struct Pushable {
  std::string path;
  std::uint64_t size = 0;  // bytes of the file at `path`
  bool compressed = false;
  std::string sha256;  // of the uncompressed binary, hexadecimal
};
// Compresses the binary if needed and returns the file to send.
Result<Pushable> pushable(const Binary& binary);

// Returns the build id of an ELF file, from the file's first bytes. nullopt: no id in these bytes.
// Pure.
std::optional<std::string> build_id(std::string_view elf);

}  // namespace lockstep::ssh
