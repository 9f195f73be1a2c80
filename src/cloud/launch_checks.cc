#include "cloud/launch_checks.h"

#include "cloud/json_api.h"
#include "cloud/pace.h"

#include <fmt/core.h>

namespace lockstep::cloud {
namespace {

LaunchOutcome still_unknown(std::string message) {
  return {.kind = LaunchOutcome::Kind::unknown, .message = std::move(message)};
}

}  // namespace

LaunchOutcome look_by_name(Web& web, const NameLook& look,
                           const std::function<Result<std::vector<Machine>>(Web&)>& machines) {
  for (bool seen_absent = false;; seen_absent = true) {
    // Take the time before the list, since the list may be as old as the question.
    const bool counts = web.now_ms() >= look.settled_ms;
    const auto there = machines(web);
    if (!there) return still_unknown(there.error().message);
    for (const Machine& machine : *there)
      if (machine.name == look.name)
        return {.kind = LaunchOutcome::Kind::answered, .ids = {machine.id}};
    if (!counts)
      return still_unknown(
          fmt::format("{}: {} is not listed, which does not count yet", look.title, look.name));
    // One list may be stale. Two lists prove the absence.
    if (seen_absent) return refused(Refusal::next_region, "", "it was never launched");
    if (const Status paused = web.pause(paced(std::chrono::milliseconds(5000), look.pace)); !paused)
      return still_unknown(paused.error().message);
  }
}

std::optional<LaunchOutcome> price_raised(const Offer& offered, const std::vector<Offer>& now) {
  for (const Offer& one : now) {
    if (one.type != offered.type || one.gpus != offered.gpus || one.spot != offered.spot) continue;
    if (one.price.per_hour <= offered.price.per_hour) return std::nullopt;
    return refused(
        Refusal::next_zone, "price-raised",
        fmt::format("{} costs {} USD an hour now, {} when it was offered", offered.type,
                    dollars_text(one.price.per_hour), dollars_text(offered.price.per_hour)));
  }
  return std::nullopt;
}

}  // namespace lockstep::cloud
