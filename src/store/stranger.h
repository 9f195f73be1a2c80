// Recognises other programs that listen where a TCPStore is looked for. Pure.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::store {

// The number that the greeting's PING asks to have echoed. It is two line ends, so that a web
// server answers too, which otherwise would wait for the rest of a line for ever.
inline constexpr std::uint32_t kNonce = 0x0A0D0A0D;
inline constexpr std::size_t kEchoBytes = 4;

// The error where another program answers the greeting, worded by the answer's first bytes.
Error no_store(const std::string& place, std::string_view answer);

}  // namespace lockstep::store
