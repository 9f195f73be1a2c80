// Launches at Lambda: prepares key, image and firewall rules, makes the call, and settles a lost
// answer.
#include "base/text.h"
#include "cloud/lambda/lambda_answers.h"
#include "cloud/lambda/lambda_provider.h"
#include "cloud/launch_checks.h"
#include "cloud/machine_name.h"
#include "cloud/pace.h"
#include "codec/json_members.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::lambda {
namespace {

// The only region without firewall rulesets.
constexpr std::string_view kWithoutRulesets = "us-south-1";

LaunchOutcome outcome(const ApiFailure& failure) {
  return outcome_of(failure, refusal_rows());
}

}  // namespace

LambdaProvider::Prepared<std::string> LambdaProvider::registered_key(Web& web,
                                                                     const LaunchSpec& spec) {
  std::string& known = prepared_["key " + std::string(key_without_comment(spec.public_key))];
  if (!known.empty()) return known;
  const std::string name = key_name(spec.owner, spec.public_key);
  // Try twice: another process may register the key between the two calls.
  for (int round = 0; round < 2; ++round) {
    const auto keys = ask(web, {.target = kKeys, .shown = "list SSH keys"});
    if (!keys) return tl::make_unexpected(outcome(keys.error()));
    known = registered_name(*keys, spec.public_key);
    if (!known.empty()) return known;
    const auto made = ask(web, {.method = "POST",
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

LambdaProvider::Prepared<std::string> LambdaProvider::image(Web& web, const LaunchSpec& spec) {
  if (!spec.image.empty()) return spec.image;
  const Gpu* gpu = find_gpu(spec.offer.gpu);
  const bool legacy = gpu != nullptr && !gpu->open_kernel_module;
  std::string& known =
      prepared_[fmt::format("image {} {} {}", spec.offer.region, spec.offer.arch, legacy)];
  if (!known.empty()) return known;
  const auto images = ask(web, {.target = "/api/v1/images", .shown = "list images"});
  if (!images) return tl::make_unexpected(outcome(images.error()));
  // If the family is empty, Lambda chooses its newest image.
  known = family_of(*images, spec.offer.region, spec.offer.arch, legacy);
  return known;
}

// keep: adds networks and removes none, since other clusters of the installation share the rules.
LambdaProvider::Prepared<std::string> LambdaProvider::ruleset(Web& web, const std::string& region,
                                                              const std::string& cidrs, bool keep) {
  if (cidrs.empty() || region == kWithoutRulesets) return std::string();
  if (cidrs.find(':') != std::string::npos)
    return tl::make_unexpected(
        refused(Refusal::provider_out, "no-ipv6",
                fmt::format("Lambda Cloud's firewall takes IPv4 networks only, not {}", cidrs)));
  std::string& known = prepared_[fmt::format("ruleset {} {}", region, cidrs)];
  if (keep && !known.empty()) return known;
  const std::string name = ruleset_name(ground_.owner);
  const auto sets = ask(web, {.target = kRulesets, .shown = "list firewall rules"});
  if (!sets) return tl::make_unexpected(outcome(sets.error()));
  const auto there = ruleset_of(*sets, name, region);
  std::vector<std::string> wanted = networks_of(cidrs);
  if (there && keep)
    wanted = networks_of(join(there->networks, ",") + (there->networks.empty() ? "" : ",") + cidrs);
  if (there && there->only_ssh &&
      std::is_permutation(wanted.begin(), wanted.end(), there->networks.begin(),
                          there->networks.end()))
    return known = there->id;
  const std::string place =
      there ? fmt::format("{}/{}", kRulesets, there->id) : std::string(kRulesets);
  const auto made = ask(web, {.method = there ? "PATCH" : "POST",
                              .target = place,
                              .body = ruleset_body(name, there ? "" : region, join(wanted, ",")),
                              .shown = "set firewall rules",
                              .repeatable = there.has_value()});
  if (!made) return tl::make_unexpected(outcome(made.error()));
  known = there ? there->id : codec::text_member(data_of(*made), "id");
  return known;
}

tl::expected<LaunchCall, LaunchOutcome> LambdaProvider::prepare(Web& web, const LaunchSpec& spec) {
  if (spec.user_data.size() > kMostUserData)
    return tl::make_unexpected(
        refused(Refusal::stop, "user-data-too-large",
                fmt::format("{} bytes of user data: Lambda Cloud takes {} at most",
                            spec.user_data.size(), kMostUserData)));
  LaunchParts parts;
  const auto key = registered_key(web, spec);
  if (!key) return tl::make_unexpected(key.error());
  const auto taken_image = image(web, spec);
  if (!taken_image) return tl::make_unexpected(taken_image.error());
  const auto rules = ruleset(web, spec.offer.region, spec.allow_from, true);
  if (!rules) return tl::make_unexpected(rules.error());
  // Check the price last: Lambda's price has then the least time to change.
  Price price;
  if (const auto now = types(web, true, price); now)
    if (auto raised = price_raised(spec.offer, offers_of(*now, {}, price)))
      return tl::make_unexpected(*std::move(raised));
  parts = {.name = name_of(spec, web.now_ms()).text(),
           .key_name = *key,
           .image = *taken_image,
           .ruleset = *rules};
  return LaunchCall{.region = spec.offer.region,
                    .zone = {},
                    .token = parts.name,
                    .target = std::string(kLaunchTarget),
                    .body = launch_body(spec, parts)};
}

LaunchOutcome LambdaProvider::launch(Web& web, const LaunchSpec& /*spec*/, const LaunchCall& call) {
  const auto answer = ask(web, {.method = "POST",
                                .target = call.target,
                                .body = call.body,
                                .shown = "launch in " + call.region,
                                // Lambda has no idempotency token: a repeated launch may make a
                                // second machine.
                                .repeatable = false,
                                .timeout = kLaunchDeadline,
                                .patience = kLaunchPatience});
  if (!answer) {
    // A key, image or ruleset may have been removed since prepare() found it.
    if (answer.error().code == "global/object-does-not-exist") prepared_.clear();
    return outcome_of(answer.error(), refusal_rows());
  }
  LaunchOutcome made{.kind = LaunchOutcome::Kind::answered,
                     .ids = codec::texts_member(data_of(*answer), "instance_ids")};
  if (made.ids.empty())
    return {.kind = LaunchOutcome::Kind::unknown,
            .message = "Lambda Cloud: launch: the answer names no machine"};
  return made;
}

LaunchOutcome LambdaProvider::resolve(Web& web, const LaunchSpec& /*spec*/, const LaunchCall& call,
                                      std::int64_t asked_ms) {
  // Find the machine by its unique name. A missing machine counts as absent only once a late launch
  // must be visible.
  const auto settled = paced(kLaunchWait + kLaunchDeadline + kSettled, pace_);
  return look_by_name(web,
                      {.title = traits().title,
                       .name = call.token,
                       .settled_ms = asked_ms + settled.count(),
                       .pace = pace_},
                      [this](Web& there) { return machines(there); });
}

Status LambdaProvider::allow(Web& web, const std::string& region, const std::string& cidrs) {
  // Forget the rules as known: this call changes them.
  std::erase_if(prepared_, [&](const auto& known) {
    return known.first.starts_with("ruleset " + region + " ");
  });
  const auto set = ruleset(web, region, cidrs, false);
  if (!set) return fail(Errc::unavailable, set.error().message);
  return {};
}

}  // namespace lockstep::cloud::lambda
