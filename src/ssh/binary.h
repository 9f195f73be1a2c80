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
  bool packed = false;  // the file at `path` is packed by gzip
};

// Returns the binary for a host's `uname -m`, which may be any text. For another architecture it is
// the file of ssh/other_binary.h, with the errors named there.
Result<Binary> binary_for(std::string_view machine);
// Returns the running binary itself.
Result<Binary> own_binary();

// The file that a push sends. A packed file is sent as it is. Otherwise the compressed form is
// cached in $XDG_CACHE_HOME/lockstep/push. If gzip is missing or fails, the push sends the binary
// itself.
struct Pushable {
  std::string path;
  std::uint64_t size = 0;  // bytes of the file at `path`
  bool compressed = false;
  std::string sha256;  // of the uncompressed binary, hexadecimal
};
// Compresses the binary if needed and returns the file to send. corrupt: a packed file is damaged.
Result<Pushable> pushable(const Binary& binary);

// Returns the build id of an ELF file, from the file's first bytes. nullopt: no id in these bytes.
// Pure.
std::optional<std::string> build_id(std::string_view elf);

}  // namespace lockstep::ssh
