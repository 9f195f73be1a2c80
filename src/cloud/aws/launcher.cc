#include "cloud/aws/launcher.h"

#include "base/text.h"
#include "cloud/gpu.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace lockstep::cloud::aws {
namespace {

// Lists may lack new machines for some seconds. A machine that is not listed after this time does
// not exist.
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

// Returns whether a refusal proves that the token has launched nothing: otherwise AWS would have
// returned the earlier result.
bool speaks_of_the_launch(Meaning meaning) {
  return meaning == Meaning::next_zone || meaning == Meaning::next_region ||
         meaning == Meaning::no_spot || meaning == Meaning::ours;
}

ImageWish wish_of(const LaunchSpec& spec) {
  const Gpu* gpu = find_gpu(spec.offer.gpu);
  return {.region = spec.offer.region,
          .given = spec.image,
          .arch = spec.offer.arch,
          .gpus = spec.offer.gpus > 0,
          .open_module = gpu == nullptr || gpu->open_kernel_module};
}

}  // namespace

LaunchOutcome Launcher::outcome_of(const ApiFailure& trouble, const std::string& region) const {
  std::string message = trouble.message;
  if (!trouble.hint.empty()) message += "; " + trouble.hint;
  if (trouble.kind == ApiFailure::Kind::no_keys)
    return refusal(Refusal::provider_out, "NoKeys", std::move(message));
  const Meaning meaning = meaning_of(trouble);
  // An earlier try may have reached AWS, and this failure says nothing about that try.
  if (trouble.maybe_done && !speaks_of_the_launch(meaning)) return {.message = std::move(message)};
  // A silent region says nothing about other regions.
  if (trouble.silent()) return refusal(Refusal::next_region, "NoAnswer", std::move(message));
  if (!trouble.refused()) return refusal(Refusal::stop, "Canceled", std::move(message));
  if (meaning == Meaning::not_allowed)
    message += " (`lockstep cloud check aws` prints the rights that are needed)";
  if (meaning == Meaning::no_spot) message += fmt::format("; {}", spot_role_hint());
  LaunchOutcome outcome = refusal(refusal_of(meaning, api_.keys_work_elsewhere(region)),
                                  trouble.code, std::move(message));
  outcome.zones_to_try = zones_named(trouble.said, region);
  return outcome;
}

// Finds the network and opens this installation's security group to the networks of `spec`.
Asked<Network> Launcher::ready_network(Web& web, const LaunchSpec& spec) {
  const std::string& region = spec.offer.region;
  Asked<Network> network;
  if (const auto known = networks_.find(region); known != networks_.end())
    network = known->second;
  else
    network = find_network(web, api_, region, spec.owner);
  if (!network || network->vpc.empty()) return network;
  for (const std::string& cidr : split(spec.allow_from, ',')) {
    auto open = open_group(web, api_, region, spec.owner, cidr, *network);
    if (!open) return tl::make_unexpected(std::move(open).error());
  }
  return network;
}

// Finds the image and makes a trial launch (DryRun), which is free. The trial reveals missing
// rights, and an image that AWS has withdrawn meanwhile.
Asked<Image> Launcher::ready_image(Web& web, const LaunchSpec& spec) {
  const ImageWish wish = wish_of(spec);
  if (const auto known = images_.find(wish.text()); known != images_.end()) return known->second;
  for (bool fresh = false;; fresh = true) {
    auto image = find_image(web, api_, wish, fresh);
    if (!image) return image;
    ApiCall call = ApiCall::of(launch_query(spec, {.image = *image}, ""), spec.offer.region);
    call.patience = std::chrono::minutes(1);
    auto answer = api_.ask(web, call);
    // AWS reports a trial that would succeed as the refusal DryRunOperation.
    if (answer || answer.error().code == "DryRunOperation") return image;
    if (!answer.error().code.starts_with("InvalidAMIID") || fresh)
      return tl::make_unexpected(std::move(answer).error());
  }
}

tl::expected<LaunchCall, LaunchOutcome> Launcher::prepare(Web& web, const LaunchSpec& spec) {
  const std::string& region = spec.offer.region;
  const std::string& zone = spec.offer.zone;
  if (spec.user_data.size() > kMostUserData)
    return Refused(refusal(Refusal::stop, "UserData",
                           fmt::format("the first-boot text has {} bytes, and EC2 takes {} at most",
                                       spec.user_data.size(), kMostUserData)));
  if (const auto ready = api_.ready(web); !ready) return Refused(outcome_of(ready.error(), region));
  Asked<Network> network;
  Asked<Image> image;
  const std::function<void(Web&)> jobs[] = {
      [&](Web& own) { network = ready_network(own, spec); },
      [&](Web& own) { image = ready_image(own, spec); },
  };
  if (networks_.contains(region) && images_.contains(wish_of(spec).text()))
    std::for_each(std::begin(jobs), std::end(jobs), [&](const auto& job) { job(web); });
  else
    web.at_once({std::begin(jobs), std::end(jobs)});
  if (!network) return Refused(outcome_of(network.error(), region));
  if (network->vpc.empty())
    return Refused(
        refusal(Refusal::next_region, "NoDefaultVpc",
                fmt::format("{} lacks a default network: `aws ec2 create-default-vpc --region {}` "
                            "makes one, which costs nothing",
                            region, region)));
  if (!image) return Refused(outcome_of(image.error(), region));
  networks_[region] = *network;
  images_[wish_of(spec).text()] = *image;
  const auto subnet = network->subnets.find(zone);
  if (subnet == network->subnets.end())
    return Refused(refusal(
        Refusal::next_zone, "NoDefaultSubnet",
        fmt::format("the default network of {} has no part in {}", region, printable(zone, 40))));
  const LaunchPlace place{.image = *image, .subnet = subnet->second, .group = network->group->id};
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
                    // Give up early: resolve() finds out later what the launch made.
                    .silence = std::chrono::seconds(20),
                    .soon = true};
  const auto root = api_.ask_xml(web, ask);
  if (!root) {
    // IdempotentParameterMismatch and IdempotentInstanceTerminated both mean a known token.
    const bool before = root.error().code.starts_with("Idempotent");
    return before ? launched_before(web, call, root.error())
                  : outcome_of(root.error(), call.region);
  }
  auto ids = launched_ids(*root);
  if (ids.empty()) return {.message = "RunInstances: the answer names no machine"};
  return answered(std::move(ids));
}

// Called when AWS reports that the token was used before. Machines with the token count as the
// answer.
LaunchOutcome Launcher::launched_before(Web& web, const LaunchCall& call,
                                        const ApiFailure& trouble) {
  Query query("DescribeInstances");
  query.filter("client-token", call.token);
  // All machines of a launch have the same token, so a list by the token shows the machines of the
  // launch.
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
  // Soon after the call, send the same token again: AWS's answer decides. Later a repeat might
  // launch unwanted machines, and by then lists are complete.
  if (web.now_ms() - asked_ms < kListedByMs) {
    LaunchOutcome outcome = launch(web, call);
    const bool refused = outcome.kind == LaunchOutcome::Kind::refused;
    // A refusal such as "throttled" or "no right" does not prove that the first call did nothing.
    if (refused && !outcome.code.empty() && !speaks_of_the_launch(meaning_of(400, outcome.code)))
      return {.message = outcome.message};
    return outcome;
  }
  return launched_before(
      web, call,
      refused_here("IdempotentInstanceTerminated", "it is not listed, and would be by now", ""));
}

}  // namespace lockstep::cloud::aws
