// Texts of unknown size with their length in front, so that a reader need not wait for the end of
// its input. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::peer {

inline constexpr std::size_t kLengthBytes = 4;

std::string with_length(std::string_view text);
// Returns the length at the front of `head`. nullopt: the head is cut, or the length exceeds
// `most`.
std::optional<std::size_t> length_in(std::string_view head, std::size_t most);

}  // namespace lockstep::peer
