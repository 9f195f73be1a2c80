#include "cloud/lambda/lambda_objects.h"

#include "base/text.h"
#include "cloud/lambda/lambda_answers.h"
#include "cloud/lambda/lambda_requests.h"
#include "codec/json_members.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace lockstep::cloud::lambda {
namespace {

constexpr std::string_view kKeys = "/api/v1/ssh-keys";
constexpr std::string_view kRulesets = "/api/v1/firewall-rulesets";
// The only region without firewall rulesets.
constexpr std::string_view kWithoutRulesets = "us-south-1";

LaunchOutcome outcome(const ApiFailure& failure) {
  return outcome_of(failure, refusal_rows());
}

}  // namespace

LambdaObjects::Prepared<std::string> LambdaObjects::registered_key(Web& web,
                                                                   const LaunchSpec& spec) {
  std::string& known = known_["key " + std::string(key_without_comment(spec.public_key))];
  if (!known.empty()) return known;
  const std::string name = key_name(spec.owner, spec.public_key);
  // Try twice: another process may register the key between the two calls.
  for (int round = 0; round < 2; ++round) {
    const auto keys = account_.ask(web, {.target = kKeys, .shown = "list SSH keys"});
    if (!keys) return tl::make_unexpected(outcome(keys.error()));
    known = registered_name(*keys, spec.public_key);
    if (!known.empty()) return known;
    const auto made = account_.ask(web, {.method = "POST",
                                         .target = kKeys,
                                         .body = key_body(name, spec.public_key),
                                         .shown = "register an SSH key"});
    if (made) return known = name;
    if (made.error().code != "global/duplicate") return tl::make_unexpected(outcome(made.error()));
  }
  return tl::make_unexpected(refused(
      Refusal::stop, "global/duplicate",
      fmt::format(
          "Lambda Cloud has another SSH key named {}: remove it at cloud.lambda.ai/ssh-keys",
          name)));
}

LambdaObjects::Prepared<std::string> LambdaObjects::image(Web& web, const LaunchSpec& spec) {
  if (!spec.image.empty()) return spec.image;
  // NVIDIA's open kernel module does not support older GPUs such as V100. They need the legacy
  // image.
  const Gpu* gpu = find_gpu(spec.offer.gpu);
  const bool legacy = gpu != nullptr && !gpu->open_kernel_module;
  std::string& known =
      known_[fmt::format("image {} {} {}", spec.offer.region, spec.offer.arch, legacy)];
  if (!known.empty()) return known;
  const auto images = account_.ask(web, {.target = "/api/v1/images", .shown = "list images"});
  // Images differ by region and processor, so the answer is kept under both.
  if (!images) return tl::make_unexpected(outcome(images.error()));
  // If the family is empty, Lambda chooses its newest image.
  known = family_of(*images, spec.offer.region, spec.offer.arch, legacy);
  return known;
}

LambdaObjects::Prepared<std::string> LambdaObjects::ruleset(Web& web, const std::string& region,
                                                            const std::string& cidrs, bool keep) {
  if (cidrs.empty() || region == kWithoutRulesets) return std::string();
  if (cidrs.find(':') != std::string::npos)
    return tl::make_unexpected(
        refused(Refusal::provider_out, "no-ipv6",
                fmt::format("Lambda Cloud's firewall takes IPv4 networks only, not {}", cidrs)));
  std::string& known = known_[fmt::format("ruleset {} {}", region, cidrs)];
  if (keep && !known.empty()) return known;
  const std::string name = ruleset_name(account_.owner());
  const auto sets = account_.ask(web, {.target = kRulesets, .shown = "list firewall rules"});
  if (!sets) return tl::make_unexpected(outcome(sets.error()));
  const auto there = ruleset_of(*sets, name, region);
  std::vector<std::string> wanted = networks_of(cidrs);
  // Clusters of a region share one ruleset: keep the networks of the other clusters.
  if (there && keep)
    wanted = networks_of(join(there->networks, ",") + (there->networks.empty() ? "" : ",") + cidrs);
  if (there && there->only_ssh &&
      std::is_permutation(wanted.begin(), wanted.end(), there->networks.begin(),
                          there->networks.end()))
    return known = there->id;
  const std::string place =
      there ? fmt::format("{}/{}", kRulesets, there->id) : std::string(kRulesets);
  // A repeated POST could make a second ruleset. A PATCH may be repeated.
  const auto made =
      account_.ask(web, {.method = there ? "PATCH" : "POST",
                         .target = place,
                         .body = ruleset_body(name, there ? "" : region, join(wanted, ",")),
                         .shown = "set firewall rules",
                         .repeatable = there.has_value()});
  if (!made) return tl::make_unexpected(outcome(made.error()));
  known = there ? there->id : codec::text_member(data_of(*made), "id");
  return known;
}

LambdaObjects::Prepared<std::string> LambdaObjects::change_ruleset(Web& web,
                                                                   const std::string& region,
                                                                   const std::string& cidrs) {
  // Forget the rules as known: this call changes them.
  std::erase_if(known_, [&](const auto& known) {
    return known.first.starts_with("ruleset " + region + " ");
  });
  return ruleset(web, region, cidrs, false);
}

Result<bool> LambdaObjects::has_key(Web& web, const std::string& public_key) {
  const auto keys = account_.ask(web, {.target = kKeys, .shown = "list SSH keys"});
  if (!keys) return Failure(keys.error().error());
  return !registered_name(*keys, public_key).empty();
}

Status LambdaObjects::clean(Web& web) {
  LOCKSTEP_TRY_ASSIGN(const auto there, account_.machines(web));
  // Keep keys and rules as long as a machine of this installation exists.
  for (const Machine& machine : there)
    if (machine.owner == account_.owner() && machine.state != Machine::State::gone) return {};
  known_.clear();
  for (const std::string_view place : {kKeys, kRulesets}) {
    const auto all = account_.ask(web, {.target = place, .shown = "list what is ours"});
    if (!all) return Failure(all.error().error());
    for (const std::string& id : ids_named(*all, ruleset_name(account_.owner()))) {
      const auto gone = account_.ask(web, {.method = "DELETE",
                                           .target = fmt::format("{}/{}", place, id),
                                           .shown = "remove what is ours"});
      // An object may stay in use for a while, or another process has removed it. Neither is an
      // error.
      if (!gone && gone.error().errc != Errc::not_found &&
          gone.error().errc != Errc::already_exists && gone.error().errc != Errc::invalid_input)
        return Failure(gone.error().error());
    }
  }
  return {};
}

}  // namespace lockstep::cloud::lambda
