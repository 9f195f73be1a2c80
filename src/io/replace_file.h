// Puts a file in the place of another one, whole or not at all: the old bytes are never cut off
// before the new ones are safe, also where the disk is full.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::io {

// Writes a file for people in a folder that others may write to, such as /tmp; mode 0644. A draft
// under a random name beside the file takes its place. A link that others have put there is
// replaced, not followed. A file that can't be replaced (because it is a mount, its folder is
// closed to us, or its name leaves no room for a draft's) is overwritten where it stands, once the
// disk has room for it. Anything that is no file and no link to one (/dev/stderr, a fifo) is
// written to.
Status replace_file(const std::string& path, std::string_view bytes);

// Writes a record that must outlast a power failure: the draft is on the disk before it takes the
// record's place, and the folder after that. Never writes in place. exhausted: no room; the record
// is as it was.
Status keep_record(const std::string& path, std::string_view bytes);

// The same for a record that must be kept even where a disk is full: kSpareRoom bytes at most go
// into PATH.spare then, whose room was taken by an earlier call.
Status keep_record_with_spare(const std::string& path, std::string_view bytes);
inline constexpr std::size_t kSpareRoom = 4096;

}  // namespace lockstep::io
