// Lambda's account and offers; lists and terminates machines.
#include "base/fnv.h"
#include "cloud/kept_answer.h"
#include "cloud/lambda/lambda.h"
#include "cloud/lambda/lambda_answers.h"
#include "cloud/lambda/lambda_provider.h"
#include "cloud/machine_name.h"
#include "cloud/pace.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::cloud::lambda {
namespace {

constexpr std::string_view kHost = "https://cloud.lambda.ai";
constexpr std::array<std::string_view, 1> kKeyNames = {"api_key"};
constexpr KeyPlaces kKeyPlaces{
    .variable = "LAMBDA_API_KEY",
    .file = ".lambda_cloud/lambda_keys",
    .names = kKeyNames,
    .advice = "make one at https://cloud.lambda.ai/api-keys and set LAMBDA_API_KEY"};
// Stock changes fast. Users saw 3 of 11 H100 launches refused within seconds of a list with
// capacity.
constexpr std::int64_t kStockAgeMs = 30'000;

constexpr Traits kTraits{
    .name = "lambda",
    .title = "Lambda Cloud",
    .private_network = true,
    .takes_turns = true,
    .ending = Ending::with_guard,
    .port_rule = PortRule::of_region,
    .notice_s = 0,
    .keys_hint = "LAMBDA_API_KEY, or api_key = ... in ~/.lambda_cloud/lambda_keys",
    .console = "https://cloud.lambda.ai/instances , terminate {id}",
    .fake_hint = "Lambda Cloud: tested against our own fake only, after the published API 1.8.3"};

}  // namespace

LambdaProvider::LambdaProvider(Ground ground)
    : ground_(std::move(ground)), pace_(pace_of(ground_)) {}

const Traits& LambdaProvider::traits() const {
  return kTraits;
}

Status LambdaProvider::keys() {
  const std::lock_guard lock(making_);
  if (key_) return {};
  LOCKSTEP_TRY_ASSIGN(key_, find_api_key(ground_, kKeyPlaces));
  return {};
}

Result<const JsonApi*> LambdaProvider::api() {
  LOCKSTEP_TRY(keys());
  const std::lock_guard lock(making_);
  if (api_) return &*api_;
  LambdaPacer::Limits limits;
  limits.question = paced(limits.question, pace_);
  limits.launch = paced(limits.launch, pace_);
  limits.longest_wait = kLaunchPatience;
  // Limits hold for an account, so name the file by a hash of the account's key.
  pacer_.emplace(fmt::format("{}/lambda-{:016x}.turns", ground_.state, fnv1a(key_->key)), limits);
  api_.emplace(JsonApi::Settings{
      .title = std::string(kTraits.title),
      .base = base_of(ground_, "LOCKSTEP_LAMBDA_ENDPOINT", kHost),
      .secret = key_->key,
      .pace = pace_,
      .words = words_of,
      .turn =
          [this](Web& web, const JsonQuestion& question) {
            return pacer_->turn(web, question.target == kLaunchTarget);
          },
      // A refusal as too early delays all processes, since Lambda limits the account.
      .too_early = [this](Web& web,
                          std::chrono::milliseconds time) { pacer_->put_off(web, time); }});
  return &*api_;
}

JsonResult LambdaProvider::ask(Web& web, JsonQuestion question) {
  const auto service = api();
  if (!service) return tl::make_unexpected(without_answer(service.error(), false));
  return (*service)->ask(web, question);
}

Result<std::vector<Machine>> LambdaProvider::machines(Web& web) {
  const auto answer = ask(web, {.target = kInstances, .shown = "list machines"});
  if (!answer) return Failure(answer.error().error());
  // An unreadable list must not look like an empty list: machines would seem gone.
  if (!data_of(*answer).is_array())
    return fail(Errc::corrupt, "Lambda Cloud: list machines: the answer has no list");
  return machines_of(*answer);
}

Result<std::string> LambdaProvider::account(Web& web) {
  LOCKSTEP_TRY(machines(web));
  return fmt::format("the account of the key in {}", key_->where);
}

Result<nlohmann::json> LambdaProvider::types(Web& web, bool fresh, Price& price) {
  LOCKSTEP_TRY(api());
  const std::string name = fmt::format("lambda-types-{:016x}", fnv1a(key_->key));
  const auto kept =
      fresh ? std::nullopt : kept_answer(ground_.cache, name, web.now_ms(), kStockAgeMs);
  price = {.source = Price::Source::live, .as_of_ms = web.now_ms()};
  if (kept) {
    auto parsed = codec::parse_json(kept->text, {.bytes = 16U << 20});
    price = {.source = Price::Source::cached, .as_of_ms = kept->as_of_ms};
    if (parsed.is_object()) return parsed;
  }
  auto answer = ask(web, {.target = "/api/v1/instance-types",
                          .shown = "list types of machine",
                          .patience = std::chrono::milliseconds(8000)});
  if (!answer) return Failure(answer.error().error());
  price = {.source = Price::Source::live, .as_of_ms = web.now_ms()};
  keep_answer(ground_.cache, name, codec::print_json(*answer), web.now_ms());
  return std::move(*answer);
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
    const auto answer = types(web, query.fresh, price);
    if (answer) catalog.offers = offers_of(*answer, query, price);
    if (!answer) silence.why = answer.error().message;
  }
  if (!silence.why.empty()) catalog.silent.push_back(std::move(silence));
  return catalog;
}

Result<Listing> LambdaProvider::list(Web& web, const ListQuery& query) {
  LOCKSTEP_TRY_ASSIGN(auto all, machines(web));
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
    const auto answer = ask(web, {.method = "POST",
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
    LOCKSTEP_TRY_ASSIGN(const auto there, this->machines(web));
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

std::unique_ptr<Provider> make_provider(Ground ground) {
  return std::make_unique<LambdaProvider>(std::move(ground));
}

}  // namespace lockstep::cloud::lambda
