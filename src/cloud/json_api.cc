#include "cloud/json_api.h"

#include "base/text.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::cloud {
namespace {

constexpr codec::JsonLimits kJsonOfServices{.bytes = 16U << 20, .values = 2U << 20};
constexpr std::size_t kMostOfWords = 300;

bool is_success(int status) {
  return status >= 200 && status < 300;
}

Errc errc_of_status(int status) {
  if (status == 401 || status == 403) return Errc::denied;
  if (status == 404) return Errc::not_found;
  if (status == 409) return Errc::already_exists;
  return status == 429 || status >= 500 ? Errc::unavailable : Errc::invalid_input;
}

}  // namespace

JsonFailure JsonApi::failed(const JsonQuestion& question, const http::Answer& answer) const {
  const int status = answer.head.status;
  JsonFailure failure{
      .status = status, .sent = true, .retry_after = std::string(answer.head.field("retry-after"))};
  const std::string doing = fmt::format("{}: {}", settings_.title, question.shown);
  if (is_success(status)) {
    failure.error = fail(Errc::corrupt, doing + ": the answer is no JSON").value();
    return failure;
  }
  // The secret would go where nobody has checked who listens.
  if (status >= 300 && status < 400) {
    failure.error = fail(Errc::unavailable,
                         fmt::format("{}: HTTP {}, and redirects are not followed", doing, status))
                        .value();
    return failure;
  }
  ServiceWords words = settings_.words(codec::parse_json(answer.body, kJsonOfServices));
  failure.code = printable(words.code, 80);
  replace_all(words.message, settings_.secret, "[key]");
  failure.said = printable(words.message, kMostOfWords);
  failure.error = failed_with(question.shown, std::move(words), status);
  return failure;
}

Error JsonApi::failed_with(std::string_view doing, ServiceWords words, int status) const {
  std::string message = fmt::format("{}: {}", settings_.title, doing);
  if (!is_success(status)) message += fmt::format(": HTTP {}", status);
  replace_all(words.message, settings_.secret, "[key]");
  for (const std::string& word :
       {printable(words.code, 80), printable(words.message, kMostOfWords)})
    if (!word.empty()) message += ": " + word;
  return fail(errc_of_status(status), std::move(message)).value();
}

JsonResult JsonApi::ask_once(Web& web, const JsonQuestion& question) const {
  Question whole{
      .method = std::string(question.method),
      .base = settings_.base,
      .target = std::string(question.target),
      .fields = {{"authorization", "Bearer " + settings_.secret}, {"accept", "application/json"}},
      .body = std::string(question.body),
      .timeout = question.timeout,
      .body_limit = kJsonOfServices.bytes,
      .repeatable = question.repeatable,
      .shown = fmt::format("{}: {}", settings_.title, question.shown)};
  if (!question.body.empty()) whole.fields.push_back({"content-type", "application/json"});
  if (settings_.turn)
    if (const Status turn = settings_.turn(web, question); !turn)
      return tl::make_unexpected(JsonFailure{.error = turn.error()});
  Reply reply = web.ask(whole);
  if (!reply.answer)
    return tl::make_unexpected(JsonFailure{.sent = reply.sent, .error = reply.answer.error()});
  if (is_success(reply.answer->head.status)) {
    if (strip(reply.answer->body).empty()) return nlohmann::json();
    nlohmann::json parsed = codec::parse_json(reply.answer->body, kJsonOfServices);
    if (!parsed.is_discarded()) return parsed;
  }
  return tl::make_unexpected(failed(question, *reply.answer));
}

JsonResult JsonApi::ask(Web& web, const JsonQuestion& question) const {
  Backoff backoff(web.now_ms(), question.patience, settings_.pace);
  while (true) {
    JsonResult answer = ask_once(web, question);
    if (answer) return answer;
    const JsonFailure& failure = answer.error();
    // What was not sent, or came too early, was not done. A deadline is not waited for twice.
    const bool undone = !failure.sent || failure.status == 429;
    const bool passing = failure.status == 0 || failure.status == 429 || failure.status >= 500;
    if (failure.error.code == Errc::canceled || failure.error.code == Errc::timeout || !passing ||
        !(undone || question.repeatable))
      return answer;
    const auto pause = backoff.next(web.now_ms(), failure.retry_after);
    if (!pause) return answer;
    if (failure.status == 429 && settings_.too_early) settings_.too_early(web, *pause);
    if (const Status paused = web.pause(*pause); !paused) {
      answer.error().error = paused.error();
      return answer;
    }
  }
}

LaunchOutcome refused(Refusal refusal, std::string code, std::string message) {
  return {.kind = LaunchOutcome::Kind::refused,
          .refusal = refusal,
          .code = std::move(code),
          .message = std::move(message)};
}

LaunchOutcome outcome_of(const JsonFailure& failure, std::span<const RefusalRow> rows) {
  if (failure.open())
    return {.kind = LaunchOutcome::Kind::unknown, .message = failure.error.message};
  const std::string code = !failure.code.empty() ? failure.code
                           : failure.status == 0 ? std::string("unreachable")
                                                 : fmt::format("http-{}", failure.status);
  // The code stands beside it.
  return refused(refusal_of(rows, code), code,
                 failure.said.empty() ? failure.error.message
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
