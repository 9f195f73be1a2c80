#include "rows/slots.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::rows {
namespace {

// Each slot is a `lockstep run` with its ranks: a slip in --at-once must not start a million.
constexpr std::int64_t kMostSlots = 1024;

}  // namespace

Result<std::vector<Slot>> slots_of(const SlotRequest& request) {
  const auto gpus = static_cast<std::int64_t>(request.gpus.size());
  if (request.gpus_per_job && *request.gpus_per_job < 0)
    return fail(Errc::invalid_input, "--gpus-per-job must not be negative");
  if (request.at_once && *request.at_once < 1)
    return fail(Errc::invalid_input, "--at-once must be at least 1");
  const std::int64_t each =
      gpus == 0 ? request.gpus_per_job.value_or(0) : request.gpus_per_job.value_or(request.workers);
  if (each > gpus)
    return fail(Errc::invalid_input,
                fmt::format("a row needs {} GPUs, and this host has {}", each, gpus),
                "--gpus-per-job says how many a row gets");
  // Nothing tells how many rows without GPUs fit: run one at a time, unless --at-once says more.
  std::int64_t count = each > 0 ? gpus / each : 1;
  if (request.at_once) {
    // --at-once counts over all hosts. The first hosts take the remainder.
    const std::int64_t share = *request.at_once / request.nodes +
                               (request.node < *request.at_once % request.nodes ? 1 : 0);
    count = each > 0 || gpus > 0 ? std::min(count, share) : share;
  }
  count = std::min(count, kMostSlots);
  std::vector<Slot> slots;
  for (std::int64_t i = 0; i < count; ++i) {
    Slot slot;
    if (each > 0) {
      const auto first = request.gpus.begin() + i * each;
      slot.gpus = join(std::vector<std::string>(first, first + each), ",");
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

}  // namespace lockstep::rows
