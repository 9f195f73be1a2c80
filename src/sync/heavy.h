// Finds the files and folders that make a tree large. Pure.
#pragma once

#include "sync/manifest.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::sync {

struct Heavy {
  std::string path;  // a folder ends with "/"
  std::uint64_t bytes = 0;
};

// Returns the largest first: files, and folders whose bytes are spread over many files. No result
// lies inside another.
std::vector<Heavy> heaviest(const Manifest& manifest, std::size_t count);

}  // namespace lockstep::sync
