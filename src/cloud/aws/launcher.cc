#include "cloud/aws/launcher.h"

#include "base/text.h"
#include "cloud/gpu.h"

#include <fmt/core.h>

namespace lockstep::cloud::aws {
namespace {

// What is not listed by then is not there: new machines may be missing for a while.
constexpr std::int64_t kListedByMs = 60'000;

LaunchOutcome refusal(Refusal what, std::string code, std::string message) {
  return {.kind = LaunchOutcome::Kind::refused,
          .refusal = what,
          .code = std::move(code),
          .message = std::move(message)};
}

LaunchOutcome answered(std::vector<std::string> ids) {
  return {.kind = LaunchOutcome::Kind::answered, .ids = std::move(ids)};
}

ImageWish wish_of(const LaunchSpec& spec) {
  const Gpu* gpu = find_gpu(spec.offer.gpu);
  return {.region = spec.offer.region,
          .given = spec.image,
          .arch = spec.offer.arch,
          .open_module = gpu == nullptr || gpu->open_kernel_module};
}

}  // namespace

LaunchOutcome Launcher::outcome_of(const Trouble& trouble, const std::string& region) const {
  std::string message = trouble.message;
  if (!trouble.hint.empty()) message += "; " + trouble.hint;
  switch (trouble.kind) {
    case Trouble::Kind::no_keys:
      return refusal(Refusal::provider_out, "NoKeys", std::move(message));
    case Trouble::Kind::canceled:
    case Trouble::Kind::silent:
      if (trouble.maybe_done) return {.message = std::move(message)};
      return trouble.kind == Trouble::Kind::silent
                 ? refusal(Refusal::next_region, "NoAnswer", std::move(message))
                 : refusal(Refusal::stop, "Canceled", std::move(message));
    case Trouble::Kind::refused:
      break;
  }
  // Neither done nor refused for good, as often as it was asked.
  if (trouble.meaning == Meaning::again && trouble.maybe_done)
    return {.message = std::move(message)};
  if (trouble.meaning == Meaning::not_allowed)
    message += " (`lockstep cloud check aws` prints the rights that are needed)";
  LaunchOutcome outcome = refusal(refusal_of(trouble.meaning, api_.keys_work_elsewhere(region)),
                                  trouble.code, std::move(message));
  outcome.zones_to_try = zones_named(trouble.said, region);
  return outcome;
}

Asked<void> Launcher::look_around(Web& web, const LaunchSpec& spec, const ImageWish& wish) {
  const std::string& region = spec.offer.region;
  Asked<Network> network;
  Asked<Image> image;
  const bool new_network = !networks_.contains(region);
  const bool new_image = !images_.contains(wish);
  std::vector<std::function<void(Web&)>> jobs;
  if (new_network)
    jobs.emplace_back([&](Web& own) { network = find_network(own, api_, region, spec.owner); });
  if (new_image) jobs.emplace_back([&](Web& own) { image = find_image(own, api_, wish, false); });
  if (!jobs.empty()) web.at_once(jobs);
  if (!network) return tl::make_unexpected(std::move(network).error());
  if (!image) return tl::make_unexpected(std::move(image).error());
  if (new_network) networks_[region] = std::move(*network);
  if (new_image) images_[wish] = std::move(*image);
  return {};
}

// Rights that are missing show at no cost; so does an image that has been taken back since.
Asked<void> Launcher::try_dry(Web& web, const LaunchSpec& spec, const ImageWish& wish,
                              LaunchPlace& place) {
  const std::string& region = spec.offer.region;
  if (tried_.contains(region)) return {};
  for (bool fresh = false;; fresh = true) {
    ApiCall call = ApiCall::of(launch_query(spec, place, ""), region);
    call.patience = std::chrono::minutes(1);
    call.soon = true;  // the group may have been made just now
    const auto answer = api_.ask(web, call);
    if (answer || answer.error().code == "DryRunOperation") break;
    if (!answer.error().code.starts_with("InvalidAMIID") || fresh)
      return tl::make_unexpected(answer.error());
    auto image = find_image(web, api_, wish, true);
    if (!image) return tl::make_unexpected(std::move(image).error());
    place.image = images_[wish] = std::move(*image);
  }
  tried_.insert(region);
  return {};
}

tl::expected<LaunchCall, LaunchOutcome> Launcher::prepare(Web& web, const LaunchSpec& spec) {
  const std::string& region = spec.offer.region;
  const std::string& zone = spec.offer.zone;
  const auto refused = [&](const Trouble& trouble) { return Refused(outcome_of(trouble, region)); };
  if (spec.user_data.size() > kMostUserData)
    return Refused(refusal(Refusal::stop, "UserData",
                           fmt::format("the first-boot text has {} bytes, and EC2 takes {} at most",
                                       spec.user_data.size(), kMostUserData)));
  if (const auto ready = api_.ready(web); !ready) return refused(ready.error());
  const ImageWish wish = wish_of(spec);
  if (const auto seen = look_around(web, spec, wish); !seen) return refused(seen.error());
  Network& network = networks_[region];
  if (network.vpc.empty())
    return Refused(refusal(
        Refusal::next_region, "NoDefaultVpc",
        fmt::format("there is no default network in {}: `aws ec2 create-default-vpc --region {}` "
                    "makes one, which costs nothing",
                    region, region)));
  const auto subnet = network.subnets.find(zone);
  if (subnet == network.subnets.end())
    return Refused(refusal(
        Refusal::next_zone, "NoDefaultSubnet",
        fmt::format("the default network of {} has no part in {}", region, printable(zone, 40))));
  if (const auto open = open_group(web, api_, region, spec.owner, spec.allow_from, network); !open)
    return refused(open.error());
  LaunchPlace place{.image = images_[wish], .subnet = subnet->second, .group = network.group->id};
  if (const auto tried = try_dry(web, spec, wish, place); !tried) return refused(tried.error());
  const std::string token = launch_token(spec);
  return LaunchCall{.region = region,
                    .zone = zone,
                    .token = token,
                    .target = "RunInstances",
                    .body = launch_query(spec, place, token).body()};
}

LaunchOutcome Launcher::launch(Web& web, const LaunchCall& call) {
  const ApiCall ask{.region = call.region,
                    .action = call.target,
                    .body = call.body,
                    .timeout = std::chrono::seconds(20),
                    .patience = std::chrono::minutes(2),
                    .silence = std::chrono::seconds(20),
                    .soon = true};
  const auto root = api_.ask_xml(web, ask);
  if (!root) {
    const bool before = root.error().code.starts_with("Idempotent");
    return before ? launched_before(web, call, root.error())
                  : outcome_of(root.error(), call.region);
  }
  auto ids = launched_ids(*root);
  if (ids.empty()) return {.message = "RunInstances: the answer names no machine"};
  return answered(std::move(ids));
}

// The token was taken, and its machines are no longer what was asked for. They count all the same.
LaunchOutcome Launcher::launched_before(Web& web, const LaunchCall& call, const Trouble& trouble) {
  Query query("DescribeInstances");
  query.filter("client-token", call.token);
  const auto reservations = api_.ask_pages(web, query, call.region, "reservationSet");
  if (!reservations) return {.message = reservations.error().message};
  std::vector<std::string> ids;
  for (const Machine& machine : machines_of(*reservations, call.region))
    ids.push_back(machine.id);
  if (!ids.empty()) return answered(std::move(ids));
  if (trouble.code == "IdempotentInstanceTerminated")
    return refusal(Refusal::next_zone, "", trouble.message);
  return {.message = trouble.message};
}

LaunchOutcome Launcher::resolve(Web& web, const LaunchCall& call, std::int64_t asked_ms) {
  if (const auto ready = api_.ready(web); !ready) return {.message = ready.error().message};
  // The token decides. Long after the call it would launch what may no longer be wanted, and by
  // then what is there is listed.
  if (web.now_ms() - asked_ms < kListedByMs) {
    LaunchOutcome outcome = launch(web, call);
    const bool by_keys =
        outcome.kind == LaunchOutcome::Kind::refused && outcome.refusal == Refusal::provider_out;
    // Nothing was said of the launch itself.
    if (by_keys || outcome.code == "NoAnswer" || outcome.code == "Canceled")
      return {.message = outcome.message};
    return outcome;
  }
  return launched_before(
      web, call,
      refused_here("IdempotentInstanceTerminated", "it is not listed, and would be by now", ""));
}

}  // namespace lockstep::cloud::aws
