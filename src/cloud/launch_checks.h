// Checks around a launch for providers without price guarantee and idempotency token: whether the
// price still holds, and after a lost answer whether a machine of the launch's unique name exists.
#pragma once

#include "cloud/provider.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::cloud {

struct NameLook {
  std::string_view title;  // of the provider
  std::string_view name;   // of the machine
  std::int64_t settled_ms =
      0;  // Unix time; two lists without the machine after it prove its absence
  double pace = 1;
};

// Looks for the machine of a lost launch. unknown: its absence is not proven yet.
LaunchOutcome look_by_name(Web& web, const NameLook& look,
                           const std::function<Result<std::vector<Machine>>(Web&)>& machines);

// Returns a refusal if the type costs more now than it was offered for: the user has agreed to the
// old price, and a budget pays for less time. Only type and price of `now` count.
std::optional<LaunchOutcome> price_raised(const Offer& offered, const std::vector<Offer>& now);

}  // namespace lockstep::cloud
