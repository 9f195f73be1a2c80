#include "cloud/lambda/lambda_account.h"

#include "base/fnv.h"
#include "cloud/kept_answer.h"
#include "cloud/lambda/lambda_answers.h"
#include "cloud/lambda/lambda_requests.h"
#include "cloud/pace.h"

#include <fmt/core.h>

#include <array>
#include <utility>

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

}  // namespace

LambdaAccount::LambdaAccount(Ground ground) : ground_(std::move(ground)), pace_(pace_of(ground_)) {}

Status LambdaAccount::find_key() {
  const std::lock_guard lock(making_);
  if (key_) return {};
  LOCKSTEP_TRY_ASSIGN(key_, find_api_key(ground_, kKeyPlaces));
  return {};
}

Result<const JsonApi*> LambdaAccount::api() {
  LOCKSTEP_TRY(find_key());
  const std::lock_guard lock(making_);
  if (api_) return &*api_;
  LambdaPacer::Limits limits;
  limits.question = paced(limits.question, pace_);
  limits.launch = paced(limits.launch, pace_);
  limits.longest_wait = kLaunchPatience;
  // Limits hold for an account, so name the file by a hash of the account's key.
  pacer_.emplace(fmt::format("{}/lambda-{:016x}.turns", ground_.state, fnv1a(key_->key)), limits);
  api_.emplace(JsonApi::Settings{
      .title = std::string(kTitle),
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

JsonResult LambdaAccount::ask(Web& web, JsonQuestion question) {
  const auto service = api();
  if (!service) return tl::make_unexpected(without_answer(service.error(), false));
  return (*service)->ask(web, question);
}

Result<std::vector<Machine>> LambdaAccount::machines(Web& web) {
  const auto answer = ask(web, {.target = "/api/v1/instances", .shown = "list machines"});
  if (!answer) return Failure(answer.error().error());
  // An unreadable list must not look like an empty list: machines would seem gone.
  if (!data_of(*answer).is_array())
    return fail(Errc::corrupt, "Lambda Cloud: list machines: the answer has no list");
  return machines_of(*answer);
}

Result<nlohmann::json> LambdaAccount::types(Web& web, bool fresh, Price& price) {
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

}  // namespace lockstep::cloud::lambda
