// Launches at RunPod: checks bid and price, makes the call, and settles a lost answer.
#include "cloud/launch_checks.h"
#include "cloud/machine_name.h"
#include "cloud/pace.h"
#include "cloud/runpod/runpod_provider.h"
#include "cloud/runpod/runpod_requests.h"
#include "cloud/server_clock.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::runpod {
namespace {

constexpr std::int64_t kLeastLifetimeMs = 60'000;

// Returns the time at which RunPod terminates the pod (terminateAfter), even without this client.
// The time is by RunPod's clock: a client whose clock is an hour behind would lose its pods an hour
// early.
std::int64_t hard_end(const LaunchSpec& spec, std::int64_t now_ms) {
  now_ms += known_server_ahead_ms().value_or(0);
  if (spec.lifetime_s > 0) return now_ms + std::max(spec.lifetime_s * 1000, kLeastLifetimeMs);
  return spec.ends_ms > 0 ? std::max(spec.ends_ms, now_ms + kLeastLifetimeMs) : 0;
}

}  // namespace

// Returns the bid. RunPod bills the bid itself, so bid the lowest price that wins now. The bid is
// at most the on-demand price, the user's limit and the price of the plan.
tl::expected<Micros, LaunchOutcome> RunpodProvider::bid(Web& web, const LaunchSpec& spec) {
  const auto answer = ask_graphql(web, bids_body(spec.offer.gpus, spec.offer.type), "spot price");
  if (!answer)
    return tl::make_unexpected(refused(Refusal::provider_out, "no-answer", answer.error().message));
  const auto bids = bids_of(*answer);
  const auto found = bids.find(spec.offer.type);
  if (found == bids.end())
    return tl::make_unexpected(refused(Refusal::next_zone, "no-capacity",
                                       "RunPod: no spot pods of " + spec.offer.type + " now"));
  const Bid& now = found->second;
  Micros most = now.on_demand > 0 ? now.on_demand : now.least;
  const int gpus = std::max(spec.offer.gpus, 1);
  if (spec.max_spot) most = std::min(most, *spec.max_spot / gpus);
  most = std::min(most, spec.offer.price.per_hour / gpus);  // the plan that the user agreed to
  if (now.least > most)
    return tl::make_unexpected(
        refused(Refusal::next_zone, "bid-too-low",
                fmt::format("RunPod: spot of {} costs {} USD an hour now, {} at most would be paid",
                            spec.offer.type, dollars_text(now.least * spec.offer.gpus),
                            dollars_text(most * spec.offer.gpus))));
  return now.least;
}

std::optional<LaunchOutcome> RunpodProvider::price_raised_now(Web& web, const LaunchSpec& spec) {
  Price price;
  const auto kinds = kinds_of(web, spec.offer.gpus, true, price);
  // Without an answer go on: the price of the plan was asked for seconds ago.
  if (!kinds) return std::nullopt;
  OfferQuery query;
  if (const Gpu* gpu = find_gpu(spec.offer.gpu)) query.gpu.kinds = {gpu};
  query.gpu.count = spec.offer.gpus;
  return price_raised(spec.offer, offers_of(*kinds, query, price, spec.offer.gpus, nullptr));
}

tl::expected<LaunchCall, LaunchOutcome> RunpodProvider::prepare(Web& web, const LaunchSpec& spec) {
  if (spec.count != 1)
    return tl::make_unexpected(
        refused(Refusal::provider_out, "one-node",
                "RunPod: pods share no private network: a rental has one node only"));
  if (spec.user_data.size() > kMostStartScript)
    return tl::make_unexpected(refused(Refusal::stop, "user-data-too-large",
                                       fmt::format("RunPod: {} bytes of start script, more than {}",
                                                   spec.user_data.size(), kMostStartScript)));
  PodTerms terms{.name = name_of(spec, web.now_ms()).text(),
                 .ends_ms = hard_end(spec, web.now_ms())};
  if (spec.offer.spot) {
    const auto least = bid(web, spec);
    if (!least) return tl::make_unexpected(least.error());
    terms.bid = *least;
  } else if (auto raised = price_raised_now(web, spec)) {
    return tl::make_unexpected(*std::move(raised));
  }
  return LaunchCall{.region = spec.offer.region,
                    .zone = spec.offer.zone,
                    .token = terms.name,
                    .target = std::string(kGraphql),
                    .body = launch_body(spec, terms)};
}

LaunchOutcome RunpodProvider::launch(Web& web, const LaunchSpec& /*spec*/, const LaunchCall& call) {
  const auto answer = ask(web, {.method = "POST",
                                .target = call.target,
                                .body = call.body,
                                .shown = "launch in " + call.region,
                                // RunPod has no idempotency token: a repeated launch may make a
                                // second pod.
                                .repeatable = false,
                                .timeout = kLaunchDeadline,
                                .patience = kLaunchPatience});
  return answer ? launched(*answer) : outcome_of(answer.error(), refusal_rows());
}

LaunchOutcome RunpodProvider::resolve(Web& web, const LaunchSpec& /*spec*/, const LaunchCall& call,
                                      std::int64_t asked_ms) {
  // Find the pod by its unique name, once a late launch must be visible.
  const auto settled = paced(kLaunchPatience + kLaunchDeadline + kSettled, pace_);
  return look_by_name(web,
                      {.title = traits().title,
                       .name = call.token,
                       .settled_ms = asked_ms + settled.count(),
                       .pace = pace_},
                      [this](Web& there) { return machines(there); });
}

}  // namespace lockstep::cloud::runpod
