// What became of a launch without an answer, where a provider has no token to ask again with: the
// machine's unique name is looked for.
#pragma once

#include "cloud/provider.h"

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace lockstep::cloud {

struct NameLook {
  std::string_view title;       // of the provider
  std::string_view name;        // of the machine
  std::int64_t settled_ms = 0;  // Unix time from which absence counts, when it is seen twice
  double pace = 1;
};

LaunchOutcome look_by_name(Web& web, const NameLook& look,
                           const std::function<Result<std::vector<Machine>>(Web&)>& machines);

}  // namespace lockstep::cloud
