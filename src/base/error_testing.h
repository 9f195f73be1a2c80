// For tests: the code of a result's error.
#pragma once

#include "base/error.h"

#include <optional>

namespace lockstep {

// nullopt: the result is a value. Tests do not ask `result.error().code` itself: a value has no
// error, and the bytes that stand there may look like the expected one.
template <class Value, class Problem>
auto code_of(const tl::expected<Value, Problem>& result) -> std::optional<decltype(Problem::code)> {
  if (result) return std::nullopt;
  return result.error().code;
}

}  // namespace lockstep
