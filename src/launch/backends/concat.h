// Joins two arrays at compile time: keys shared by backends, and a backend's own keys.
#pragma once

#include <algorithm>
#include <array>

namespace lockstep::launch {

template <class T, std::size_t N, std::size_t M>
constexpr std::array<T, N + M> concat(const std::array<T, N>& one, const std::array<T, M>& other) {
  std::array<T, N + M> all{};
  std::copy(one.begin(), one.end(), all.begin());
  std::copy(other.begin(), other.end(), all.begin() + N);
  return all;
}

}  // namespace lockstep::launch
