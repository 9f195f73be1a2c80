// Tables of a provider's error codes and their meaning for renting.
#pragma once

#include "cloud/provider.h"

#include <span>
#include <string_view>

namespace lockstep::cloud {

struct RefusalRow {
  std::string_view code;  // a '*' at the end matches any rest
  Refusal refusal;
};

// Returns the refusal of the first matching row.
constexpr Refusal refusal_of(std::span<const RefusalRow> rows, std::string_view code) {
  for (const RefusalRow& row : rows) {
    const bool open = row.code.ends_with('*');
    const std::string_view start = row.code.substr(0, row.code.size() - (open ? 1 : 0));
    if (open ? code.starts_with(start) : code == start) return row.refusal;
  }
  return Refusal::unknown;
}

}  // namespace lockstep::cloud
