// 64-bit FNV-1a: the same in every version and on every machine, for names of files. Not a
// protection: it is easy to find two texts with the same value.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : text)
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return value;
}

}  // namespace lockstep
