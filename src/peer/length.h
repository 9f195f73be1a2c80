// Texts of unknown size come with their length in front, so that the other end can read them while
// its input stays open. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::peer {

inline constexpr std::size_t kLengthBytes = 4;

std::string with_length(std::string_view text);
// The length that stands at the front of `head`. nullopt: nothing is meant that is longer than
// `most`, or the head is cut.
std::optional<std::size_t> length_in(std::string_view head, std::size_t most);

}  // namespace lockstep::peer
