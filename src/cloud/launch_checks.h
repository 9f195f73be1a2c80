// Checks around a launch, for providers without price guarantee and idempotency token. The first
// check tells whether the price still holds. After a lost answer the second looks for a machine
// with the launch's unique name.
#pragma once

#include "cloud/provider.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::cloud {

struct NameLook {
  std::string_view title;       // of the provider
  std::string_view name;        // of the machine
  std::int64_t settled_ms = 0;  // Unix time; two later lists without the machine prove its absence
  double pace = 1;
};

// Looks for the machine of a lost launch. unknown: the absence of the machine is not proven yet.
LaunchOutcome look_by_name(Web& web, const NameLook& look,
                           const std::function<Result<std::vector<Machine>>(Web&)>& machines);

// Returns a refusal if the type costs more than when it was offered: the user has agreed to the old
// price, and a budget would pay for less time. Only type and price of `now` count.
std::optional<LaunchOutcome> price_raised(const Offer& offered, const std::vector<Offer>& now);

}  // namespace lockstep::cloud
