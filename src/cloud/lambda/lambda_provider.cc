#include "cloud/lambda/lambda_provider.h"

#include "cloud/lambda/lambda.h"
#include "cloud/lambda/lambda_answers.h"
#include "cloud/lambda/lambda_requests.h"
#include "cloud/launch_checks.h"
#include "cloud/machine_name.h"
#include "cloud/pace.h"
#include "codec/json_members.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::cloud::lambda {
namespace {

// A launch waits at most kLaunchPatience for a turn, and as long again for retries. The answer may
// take kLaunchDeadline. The launch may still take effect afterwards.
constexpr std::chrono::milliseconds kLaunchWait = 2 * kLaunchPatience;
constexpr std::chrono::milliseconds kLaunchDeadline{60'000};
constexpr std::chrono::milliseconds kSettled{60'000};  // later, a missing machine is absent

constexpr Traits kTraits{
    .name = "lambda",
    .title = kTitle,
    .private_network = true,
    .takes_turns = true,
    .ending = Ending::with_guard,
    .port_rule = PortRule::of_region,
    .notice_s = 0,
    .keys_hint = "LAMBDA_API_KEY, or api_key = ... in ~/.lambda_cloud/lambda_keys",
    .console = "https://cloud.lambda.ai/instances , terminate {id}",
    .fake_hint = "Lambda Cloud: tested against our own fake only, after the published API 1.8.3"};

}  // namespace

LambdaProvider::LambdaProvider(Ground ground) : account_(std::move(ground)), objects_(account_) {}

const Traits& LambdaProvider::traits() const {
  return kTraits;
}

Status LambdaProvider::keys() {
  return account_.find_key();
}

Result<std::string> LambdaProvider::account(Web& web) {
  // A list proves that the key works.
  LOCKSTEP_TRY(account_.machines(web));
  return fmt::format("the account of the key in {}", account_.key().where);
}

Catalog LambdaProvider::offers(Web& web, const OfferQuery& query) {
  Catalog catalog;
  NoAnswer silence{.provider = "lambda", .why = {}};
  if (const Status there = keys(); !there) {
    silence.why = there.error().message;
    silence.no_keys = there.error().code == Errc::not_found;
  } else if (query.spot) {
    silence.why = "Lambda Cloud has no spot machines";
  } else {
    Price price;
    const auto answer = account_.types(web, query.fresh, price);
    if (answer) catalog.offers = offers_of(*answer, query, price);
    if (!answer) silence.why = answer.error().message;
  }
  if (!silence.why.empty()) catalog.silent.push_back(std::move(silence));
  return catalog;
}

tl::expected<LaunchCall, LaunchOutcome> LambdaProvider::prepare(Web& web, const LaunchSpec& spec) {
  if (spec.user_data.size() > kMostUserData)
    return tl::make_unexpected(
        refused(Refusal::stop, "user-data-too-large",
                fmt::format("{} bytes of user data: Lambda Cloud takes {} at most",
                            spec.user_data.size(), kMostUserData)));
  LaunchParts parts;
  const auto key = objects_.registered_key(web, spec);
  if (!key) return tl::make_unexpected(key.error());
  const auto taken_image = objects_.image(web, spec);
  if (!taken_image) return tl::make_unexpected(taken_image.error());
  const auto rules = objects_.ruleset(web, spec.offer.region, spec.allow_from, true);
  if (!rules) return tl::make_unexpected(rules.error());
  // Check the price last: Lambda's price has then the least time to change.
  Price price;
  if (const auto now = account_.types(web, true, price); now)
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
  const auto answer = account_.ask(web, {.method = "POST",
                                         .target = call.target,
                                         .body = call.body,
                                         .shown = "launch in " + call.region,
                                         // Lambda has no idempotency token: a repeated launch may
                                         // make a second machine.
                                         .repeatable = false,
                                         .timeout = kLaunchDeadline,
                                         .patience = kLaunchPatience});
  if (!answer) {
    // A key, image or ruleset may have been removed since prepare() found it.
    if (answer.error().code == "global/object-does-not-exist") objects_.forget();
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
  const auto settled = paced(kLaunchWait + kLaunchDeadline + kSettled, account_.pace());
  return look_by_name(web,
                      {.title = traits().title,
                       .name = call.token,
                       .settled_ms = asked_ms + settled.count(),
                       .pace = account_.pace()},
                      [this](Web& there) { return account_.machines(there); });
}

Status LambdaProvider::allow(Web& web, const std::string& region, const std::string& cidrs) {
  const auto set = objects_.change_ruleset(web, region, cidrs);
  if (!set) return fail(Errc::unavailable, set.error().message);
  return {};
}

Result<Listing> LambdaProvider::list(Web& web, const ListQuery& query) {
  LOCKSTEP_TRY_ASSIGN(auto all, account_.machines(web));
  Listing listing;
  for (Machine& machine : all)
    if (asked_for(query, machine)) listing.machines.push_back(std::move(machine));
  return listing;
}

Status LambdaProvider::end(Web& web, const std::vector<Machine>& machines) {
  std::vector<std::string> ids;
  ids.reserve(machines.size());
  for (const Machine& machine : machines)
    ids.push_back(machine.id);
  // The answer must name every machine. Repeat the call for each machine that is missing in the
  // answer and still listed.
  for (int round = 0; round < 3 && !ids.empty(); ++round) {
    const auto answer = account_.ask(web, {.method = "POST",
                                           .target = "/api/v1/instance-operations/terminate",
                                           .body = terminate_body(ids),
                                           .shown = "end machines",
                                           .patience = std::chrono::milliseconds(60'000)});
    // If one machine is unknown, Lambda may refuse the whole call. The list then tells the rest.
    if (!answer && answer.error().status != 404 &&
        answer.error().code != "global/object-does-not-exist")
      return Failure(answer.error().error());
    if (answer)
      for (const std::string& id : terminated_ids(*answer))
        std::erase(ids, id);
    if (ids.empty()) break;
    LOCKSTEP_TRY_ASSIGN(const auto there, account_.machines(web));
    std::erase_if(ids, [&](const std::string& id) {
      return std::none_of(there.begin(), there.end(), [&](const Machine& machine) {
        return machine.id == id && machine.state != Machine::State::ending &&
               machine.state != Machine::State::gone;
      });
    });
  }
  if (ids.empty()) return {};
  return fail(Errc::unavailable,
              fmt::format("Lambda Cloud does not end {} machine(s), the first is {}", ids.size(),
                          ids.front()),
              "look at https://cloud.lambda.ai/instances: machines are billed until they end");
}

Result<bool> LambdaProvider::has_key(Web& web, const std::string& public_key) {
  return objects_.has_key(web, public_key);
}

Status LambdaProvider::clean(Web& web) {
  return objects_.clean(web);
}

std::vector<Finding> LambdaProvider::check(Web& web) {
  using Kind = Finding::Kind;
  std::vector<Finding> found;
  if (const Status there = keys(); !there) {
    found.push_back({Kind::bad, there.error().message, there.error().hint});
    return found;
  }
  found.push_back({Kind::good, "key in " + account_.key().where});
  if (account_.key().exposed)
    found.push_back({Kind::bad, "others may read " + account_.key().where,
                     "chmod 600 " + account_.key().where});
  Price price;
  const auto types = account_.types(web, true, price);
  if (!types) {
    found.push_back({Kind::bad, types.error().message,
                     "a key has all rights of its account; make a new one at "
                     "https://cloud.lambda.ai/api-keys"});
    return found;
  }
  const auto offers = offers_of(*types, {}, price);
  const auto in_stock = std::count_if(offers.begin(), offers.end(), [](const Offer& offer) {
    return offer.stock == Stock::in_stock;
  });
  found.push_back({Kind::good, fmt::format("the key works; {} offers in stock", in_stock)});
  if (const auto machines = account_.machines(web); machines)
    found.push_back({Kind::good, fmt::format("{} machines of ours", machines->size())});
  else
    found.push_back({Kind::bad, machines.error().message});
  found.push_back({Kind::note, "quotas are not told by the API"});
  found.push_back({Kind::note,
                   "a machine here can't end its own bill: a guard has to, or you with "
                   "--i-will-watch"});
  found.push_back({Kind::note,
                   "us-south-1 has no firewall of its own for a machine: the account's rules "
                   "for all hold there"});
  found.push_back({Kind::note, std::string(traits().fake_hint)});
  return found;
}

std::unique_ptr<Provider> make_provider(Ground ground) {
  return std::make_unique<LambdaProvider>(std::move(ground));
}

}  // namespace lockstep::cloud::lambda
