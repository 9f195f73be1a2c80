// Random run ids, suffixes of directories, and keys.
#pragma once

#include <string>

namespace lockstep {

std::string random_uuid4();                   // "8-4-4-4-12" lower-case hex
std::string random_suffix(std::size_t size);  // Python mkdtemp's alphabet: a-z, 0-9, _
std::string random_key(std::size_t size);     // arbitrary bytes, at most 256

}  // namespace lockstep
