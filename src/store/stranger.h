// Recognises other programs that listen where a TCPStore was expected. Pure.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::store {

// The number in the greeting's PING. Its bytes are two line ends: a web server then answers, too,
// instead of waiting for ever for the rest of a line.
inline constexpr std::uint32_t kNonce = 0x0A0D0A0D;
inline constexpr std::size_t kEchoBytes = 4;

// Returns the error for a program with a wrong answer to the greeting. The first bytes of the
// answer choose the words.
Error no_store(const std::string& place, std::string_view answer);

}  // namespace lockstep::store
