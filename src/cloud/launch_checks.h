// Around a launch where the provider neither keeps a price nor knows a call again: whether the
// price still holds; and after no answer, whether a machine of that unique name is there.
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
  std::int64_t settled_ms = 0;  // Unix time from which absence counts, when it is seen twice
  double pace = 1;
};

LaunchOutcome look_by_name(Web& web, const NameLook& look,
                           const std::function<Result<std::vector<Machine>>(Web&)>& machines);

// A refusal where that type costs more now than when it was offered: the plan that was agreed to,
// and a lease that a budget pays for, no longer hold. Of `now` only the type and price count.
std::optional<LaunchOutcome> price_raised(const Offer& offered, const std::vector<Offer>& now);

}  // namespace lockstep::cloud
