#include "cloud/json_api.h"

#include "base/text.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::cloud {
namespace {

constexpr codec::JsonLimits kJsonOfServices{.bytes = 16U << 20, .values = 2U << 20};
constexpr std::size_t kMostOfWords = 300;

Errc errc_of_status(int status) {
  if (status == 401 || status == 403) return Errc::denied;
  if (status == 404) return Errc::not_found;
  if (status == 409) return Errc::already_exists;
  return status == 429 || status >= 500 ? Errc::unavailable : Errc::invalid_input;
}

// Returns the message followed by the service's own words.
std::string with_words(std::string message, const std::string& code, const std::string& said) {
  for (const std::string& word : {code, said})
    if (!word.empty()) message += ": " + word;
  return message;
}

}  // namespace

class JsonApi::Try : public ApiTry {
 public:
  Try(const Settings& settings, const JsonQuestion& asked) : settings_(settings), asked_(asked) {}

  Asked<Question> question(Web& web) override {
    if (settings_.turn)
      if (const Status turn = settings_.turn(web, asked_); !turn)
        return tl::make_unexpected(without_answer(turn.error(), false));
    Question whole{
        .method = std::string(asked_.method),
        .base = settings_.base,
        .target = std::string(asked_.target),
        .fields = {{"authorization", "Bearer " + settings_.secret}, {"accept", "application/json"}},
        .body = std::string(asked_.body),
        .timeout = asked_.timeout,
        .body_limit = kJsonOfServices.bytes,
        .repeatable = asked_.repeatable,
        .shown = doing()};
    if (!asked_.body.empty()) whole.fields.push_back({"content-type", "application/json"});
    return whole;
  }

  ApiFailure refusal(const http::Answer& answer) override {
    const int status = answer.head.status;
    // Never follow a redirect: the secret would go to an unchecked server.
    if (status >= 300 && status < 400)
      return refusal_with(
          status, "", fmt::format("{}: HTTP {}, and redirects are not followed", doing(), status));
    ServiceWords words = settings_.words(codec::parse_json(answer.body, kJsonOfServices));
    // A service may quote the key in a refusal.
    replace_all(words.message, settings_.secret, "[key]");
    ApiFailure failure = refusal_with(status, printable(words.code, 80), {});
    failure.said = printable(words.message, kMostOfWords);
    failure.message =
        with_words(fmt::format("{}: HTTP {}", doing(), status), failure.code, failure.said);
    failure.errc = errc_of_status(status);
    // Other refusals do not change by asking again.
    failure.passing = status == 429 || status >= 500;
    return failure;
  }

  void pauses(Web& web, const ApiFailure& failure, std::chrono::milliseconds pause) override {
    if (failure.status == 429 && settings_.too_early) settings_.too_early(web, pause);
  }

  std::string doing() const { return fmt::format("{}: {}", settings_.title, asked_.shown); }

 private:
  const Settings& settings_;
  const JsonQuestion& asked_;
};

JsonResult JsonApi::ask(Web& web, const JsonQuestion& question) const {
  Try call(settings_, question);
  auto body = ask_api(web, call,
                      {.repeat = question.repeatable ? Repeat::always : Repeat::if_not_done,
                       .patience = question.patience,
                       .absence = question.patience,
                       .pace = settings_.pace});
  if (!body) return tl::make_unexpected(std::move(body).error());
  // A successful DELETE may have an empty body (204).
  if (strip(*body).empty()) return nlohmann::json();
  nlohmann::json parsed = codec::parse_json(*body, kJsonOfServices);
  if (!parsed.is_discarded()) return parsed;
  return tl::make_unexpected(unreadable(call.doing() + ": the answer is not JSON"));
}

Error JsonApi::refused(std::string_view doing, ServiceWords words) const {
  replace_all(words.message, settings_.secret, "[key]");
  return fail(Errc::invalid_input,
              with_words(fmt::format("{}: {}", settings_.title, doing), printable(words.code, 80),
                         printable(words.message, kMostOfWords)))
      .value();
}

LaunchOutcome refused(Refusal refusal, std::string code, std::string message) {
  return {.kind = LaunchOutcome::Kind::refused,
          .refusal = refusal,
          .code = std::move(code),
          .message = std::move(message)};
}

LaunchOutcome outcome_of(const ApiFailure& failure, std::span<const RefusalRow> rows) {
  if (failure.maybe_done) return {.kind = LaunchOutcome::Kind::unknown, .message = failure.message};
  const std::string code = !failure.code.empty() ? failure.code
                           : failure.status == 0 ? std::string("unreachable")
                                                 : fmt::format("http-{}", failure.status);
  // Leave the code out: renting prints it after the message.
  return refused(refusal_of(rows, code), code,
                 !failure.refused() || failure.said.empty()
                     ? failure.message
                     : fmt::format("HTTP {}: {}", failure.status, failure.said));
}

std::string base_of(const Ground& ground, std::string_view variable, std::string_view otherwise) {
  std::string base = ground.env(variable).value_or("");
  if (base.empty()) base = otherwise;
  while (base.ends_with('/'))
    base.pop_back();
  return base;
}

}  // namespace lockstep::cloud
