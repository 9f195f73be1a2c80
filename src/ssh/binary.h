// The binary that is pushed to hosts: this one, or the one for another architecture that lies
// beside it; its name by content, and its compressed form.
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

// machine: the host's `uname -m`, which may be any text. not_found: the machine is not in the
// closed list of known names. For a known machine other than this one: a file `lockstep-MACHINE`
// beside this binary, or in $XDG_DATA_HOME/lockstep.
Result<Binary> binary_for(std::string_view machine);
Result<Binary> own_binary();

// What a push sends of it. The compressed form is kept in $XDG_CACHE_HOME/lockstep/push; where it
// can't be made the binary itself is sent.
struct Pushable {
  std::string path;
  std::uint64_t size = 0;
  bool compressed = false;
  std::string sha256;  // of the binary itself
};
Result<Pushable> pushable(const Binary& binary);

// The build id of an ELF file, from its first bytes; nullopt: it has none there. Pure.
std::optional<std::string> build_id(std::string_view elf);

}  // namespace lockstep::ssh
