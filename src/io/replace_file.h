// Replaces a file as a whole or not at all. The old bytes stay until the new ones are safe, even on
// a full disk.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::io {

// Writes a file for users, mode 0644, in a folder that others may write to, such as /tmp. Writes a
// draft with a random name beside the file and renames it. A link planted by another user is
// replaced, not followed. A file that cannot be replaced is overwritten in place, once the disk has
// space for the new bytes: a mount, a file in a read-only folder, a name too long for a draft's. A
// device, a FIFO or a link in /dev or /proc (/dev/stdout) is written to, at the end.
Status replace_file(const std::string& path, std::string_view bytes);

// Writes a record that must survive a power failure: syncs the draft, renames it, then syncs the
// folder. Never writes in place. Fails with exhausted if there is no space: the record is
// unchanged.
Status keep_record(const std::string& path, std::string_view bytes);

// Does the same for a record that must be kept even on a full disk. Up to kSpareRoom bytes then go
// to PATH.spare, whose space an earlier call has reserved.
Status keep_record_with_spare(const std::string& path, std::string_view bytes);
inline constexpr std::size_t kSpareRoom = 4096;

}  // namespace lockstep::io
