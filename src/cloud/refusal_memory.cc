#include "cloud/refusal_memory.h"

#include <fmt/core.h>

namespace lockstep::cloud {

// Only this command leaves the region out for a while. Silence says nothing about capacity, so the
// journal does not learn it.
Tried RefusalMemory::silent(const Offer& offer, const std::string& message) {
  const std::string why = fmt::format("{}: {}", offer_words(offer), message);
  if (Status going = parts_.web.pause(std::chrono::milliseconds(0)); !going)
    return stopped_by(going.error());
  tell(parts_, RentEvent::Kind::refused, &offer, why);
  last_ = fail(Errc::unavailable, why).value();
  learned_.push_back({.provider = offer.provider,
                      .region = offer.region,
                      .spot = offer.spot,
                      .until_ms = parts_.web.now_ms() + kCapacityBlockMs,
                      .why = message});
  return {};
}

Tried RefusalMemory::refused(const Offer& offer, const LaunchOutcome& outcome) {
  const std::string why =
      fmt::format("{}: {}", offer_words(offer),
                  outcome.message.empty() ? outcome.code
                                          : fmt::format("{} ({})", outcome.message, outcome.code));
  tell(parts_, RentEvent::Kind::refused, &offer, why);
  last_ = fail(Errc::unavailable, why).value();
  const auto learned = [&](Block::Kind kind) -> Tried {
    if (const Status kept = learn(offer, kind, outcome.code); !kept)
      return stopped_by(kept.error());
    return {.what = Tried::What::next, .zones_to_try = outcome.zones_to_try};
  };
  switch (outcome.refusal) {
    case Refusal::next_zone:
      return learned(Block::Kind::capacity);
    case Refusal::next_region:
      return learned(Block::Kind::quota);
    case Refusal::provider_out:
      // Not in the journal: the user may mend the account or its keys before the next command.
      out_.insert(offer.provider);
      return {};
    case Refusal::spot_out:
      spot_out_.insert(offer.provider);
      return {};
    case Refusal::unknown:
      // Tolerate one unknown code: try the next zone, and stop at the second.
      if (unknown_codes_++ == 0) return learned(Block::Kind::capacity);
      [[fallthrough]];
    case Refusal::stop:
      break;
  }
  return stopped_by(fail(Errc::invalid_input, why).value());
}

Status RefusalMemory::learn(const Offer& offer, Block::Kind kind, const std::string& why) {
  Block block{.kind = kind,
              .provider = offer.provider,
              .region = offer.region,
              .type = offer.type,
              .spot = offer.spot,
              .why = why};
  std::int64_t lasts = kUnhealthyBlockMs;
  if (kind == Block::Kind::capacity) {
    block.zone = offer.zone;
    lasts = kCapacityBlockMs;
  } else if (kind == Block::Kind::quota) {
    lasts = kQuotaBlockMs;
  }
  block.until_ms = parts_.web.now_ms() + lasts;
  learned_.push_back(block);
  return parts_.journal.learn(block);
}

bool RefusalMemory::is_out(const Offer& offer) const {
  return out_.contains(offer.provider) || (offer.spot && spot_out_.contains(offer.provider));
}

}  // namespace lockstep::cloud
