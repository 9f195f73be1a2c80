#include "project/fan_plan.h"

namespace lockstep::project {

std::optional<FanPlan> plan_fan(const std::vector<FanNeed>& needs) {
  std::optional<FanPlan> plan;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    if (needs[i].here || needs[i].bytes <= kWorthAFan) continue;
    if (plan)
      plan->takers.push_back(i);
    else
      plan = FanPlan{.seed = i};
  }
  if (plan && plan->takers.empty()) return std::nullopt;
  return plan;
}

}  // namespace lockstep::project
