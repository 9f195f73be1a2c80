// Where the bytes of a tree are. Pure.
#pragma once

#include "sync/manifest.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::sync {

struct Heavy {
  std::string path;  // of a folder with a "/" behind
  std::uint64_t bytes = 0;
};

// The largest first: files, and folders whose bytes are spread over many files. None of them holds
// another.
std::vector<Heavy> heaviest(const Manifest& manifest, std::size_t count);

}  // namespace lockstep::sync
