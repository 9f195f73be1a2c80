// What else may listen where a TCPStore is looked for. Pure.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::store {

// What the greeting's PING asks to have echoed. Its line ends make a web server answer too, which
// would wait for the rest of a line for good.
inline constexpr std::uint32_t kNonce = 0x0A0D0A0D;
inline constexpr std::size_t kEchoBytes = 4;

// The error where another program answers the greeting, by its answer's first bytes.
Error no_store(const std::string& place, std::string_view answer);

}  // namespace lockstep::store
