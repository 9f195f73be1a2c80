#include "cloud/aws/api.h"

#include "base/log.h"
#include "base/text.h"
#include "cloud/pace.h"
#include "codec/url.h"
#include "http/date.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

namespace lockstep::cloud::aws {
namespace {

struct ServiceRow {
  const char* host;  // before ".REGION.amazonaws.com"
  const char* sign_as;
  const char* variable;  // AWS_ENDPOINT_URL_...
  const char* target;    // X-Amz-Target's first half; "": the query protocol
};

constexpr ServiceRow kServices[] = {
    {"ec2", "ec2", "EC2", ""},
    {"sts", "sts", "STS", ""},
    {"ssm", "ssm", "SSM", "AmazonSSM"},
    {"api.pricing", "pricing", "PRICING", "AWSPriceListService"},
    {"servicequotas", "servicequotas", "SERVICE_QUOTAS", "ServiceQuotasV20190624"},
};

constexpr std::int64_t kRenewBeforeMs = 300'000;
constexpr int kMostPages = 50;
constexpr std::int64_t kMostSkewMs = 60'000;

const ServiceRow& row_of(Service service) {
  return kServices[static_cast<std::size_t>(service)];
}

struct Endpoint {
  std::string base;
  std::string host;
  std::string path;
};

Result<Endpoint> endpoint_of(const KeyRing& ring, const ApiCall& call) {
  const ServiceRow& row = row_of(call.service);
  const std::string own = std::string("AWS_ENDPOINT_URL_") + row.variable;
  for (const std::string& name : {own, std::string("AWS_ENDPOINT_URL")}) {
    const std::string text = ring.env(name);
    if (text.empty()) continue;
    LOCKSTEP_TRY_ASSIGN(const codec::Url url, codec::parse_url(text, name));
    const std::string host = codec::host_text(url.host, url.port, url.tls);
    return Endpoint{
        .base = (url.tls ? "https://" : "http://") + host, .host = host, .path = url.target};
  }
  if (!is_region(call.region))
    return fail(Errc::invalid_input,
                fmt::format("'{}' is no region of AWS's", printable(call.region, 60)));
  const std::string host = fmt::format("{}.{}.amazonaws.com{}", row.host, call.region,
                                       call.region.starts_with("cn-") ? ".cn" : "");
  return Endpoint{.base = "https://" + host, .host = host, .path = "/"};
}

std::string asked_text(const ApiCall& call) {
  return fmt::format("{} in {}", call.action, printable(call.region, 40));
}

Trouble no_keys(const Error& error) {
  Trouble trouble;
  trouble.kind = Trouble::Kind::no_keys;
  trouble.meaning = Meaning::keys;
  trouble.message = error.message;
  trouble.hint = error.hint;
  return trouble;
}

Trouble silent(const ApiCall& call, const Error& error, bool sent) {
  Trouble trouble;
  const std::string asked = asked_text(call);
  if (error.code == Errc::canceled) trouble.kind = Trouble::Kind::canceled;
  trouble.message = error.message.starts_with(asked) ? error.message : asked + ": " + error.message;
  trouble.said = error.message;
  trouble.hint = error.hint;
  trouble.maybe_done = sent;
  return trouble;
}

Trouble silent(const ApiCall& call, const char* message) {
  return silent(call, {.code = Errc::corrupt, .message = message, .hint = {}}, true);
}

Trouble refused(const ApiCall& call, const http::Answer& answer) {
  const int status = answer.head.status;
  ApiError error = parse_error(std::string_view(answer.body).substr(0, 64U << 10));
  Trouble trouble;
  trouble.kind = Trouble::Kind::refused;
  trouble.meaning = meaning_of(status, error.code);
  trouble.code = std::move(error.code);
  trouble.said = std::move(error.message);
  trouble.maybe_done = trouble.meaning == Meaning::again && status >= 500;
  trouble.retry_after = answer.head.field("retry-after");
  trouble.message =
      fmt::format("{}: {}{}{}", asked_text(call),
                  trouble.code.empty() ? fmt::format("HTTP {}", status) : trouble.code,
                  trouble.said.empty() ? "" : ": ", trouble.said);
  return trouble;
}

bool same_keys(const Keys& a, const Keys& b) {
  return a.key.id == b.key.id && a.key.session_token == b.key.session_token;
}

// EC2 says of keys that have expired that the request has, and of keys that were replaced that it
// can't validate them. To read a file again costs nothing, to call a program does.
bool may_be_old(const Keys& keys, std::string_view code) {
  if (code.starts_with("ExpiredToken") || code == "RequestExpired")
    return keys.read || keys.expires_ms != 0;
  return keys.read && (code == "AuthFailure" || code == "InvalidClientTokenId" ||
                       code == "UnrecognizedClientException");
}

Question question_of(const ApiCall& call, const Endpoint& endpoint) {
  const ServiceRow& row = row_of(call.service);
  const bool json = *row.target != 0;
  Question question{.base = endpoint.base,
                    .target = endpoint.path,
                    .fields = {{.name = "content-type",
                                .value = json ? "application/x-amz-json-1.1"
                                              : "application/x-www-form-urlencoded; "
                                                "charset=utf-8"}},
                    .body = call.body,
                    .timeout = call.timeout,
                    .shown = asked_text(call)};
  if (json)
    question.fields.push_back(
        {.name = "x-amz-target", .value = fmt::format("{}.{}", row.target, call.action)});
  return question;
}

}  // namespace

bool is_region(std::string_view name) {
  return name.size() > 4 && name.size() < 40 && name.find('-') != std::string_view::npos &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

void for_all_at_once(Web& web, std::size_t count,
                     const std::function<void(Web&, std::size_t)>& job) {
  if (count == 1) return job(web, 0);
  std::vector<std::function<void(Web&)>> jobs;
  for (std::size_t i = 0; i < count; ++i)
    jobs.emplace_back([&job, i](Web& own) { job(own, i); });
  if (count > 0) web.at_once(jobs);
}

ApiCall ApiCall::of(const Query& query, std::string region, Service service) {
  return {.service = service,
          .region = std::move(region),
          .action = query.action(),
          .body = query.body()};
}

ApiCall ApiCall::of(Service service, std::string region, std::string action, std::string body) {
  return {.service = service,
          .region = std::move(region),
          .action = std::move(action),
          .body = std::move(body)};
}

Trouble::Trouble() = default;
Trouble::Trouble(Trouble&& other) noexcept = default;
Trouble::Trouble(const Trouble& other) = default;
Trouble& Trouble::operator=(Trouble&& other) noexcept = default;
Trouble& Trouble::operator=(const Trouble& other) = default;
Trouble::~Trouble() = default;

Trouble refused_here(std::string code, std::string message, std::string hint) {
  Trouble trouble;
  trouble.kind = Trouble::Kind::refused;
  trouble.meaning = Meaning::ours;
  trouble.code = std::move(code);
  trouble.message = std::move(message);
  trouble.hint = std::move(hint);
  return trouble;
}

Error Trouble::error() const {
  Errc errc = Errc::unavailable;
  if (kind == Kind::no_keys) errc = Errc::not_found;
  if (kind == Kind::canceled) errc = Errc::canceled;
  if (kind == Kind::refused && meaning != Meaning::again)
    errc = meaning == Meaning::ours ? Errc::invalid_input : Errc::denied;
  return {.code = errc, .message = message, .hint = hint};
}

// AWS names the kind of policy in its answer: "... with an explicit deny in a service control
// policy".
bool Trouble::denied_by_organization() const {
  return kind == Kind::refused && meaning == Meaning::not_allowed &&
         said.find("service control policy") != std::string::npos;
}

Keys Api::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

// again: other programs may have renewed temporary keys in their files. A ring of its own reads the
// files again, as other threads use ring_.
Result<Keys> Api::find_keys(Web& web, bool again) {
  const auto assumed = [&](const Keys& base, const Profile& role) {
    return assume(web, base, role);
  };
  LOCKSTEP_TRY(ring_.find());
  if (!again) return ring_.fetch(web, assumed);
  KeyRing fresh(ring_.ground());
  LOCKSTEP_TRY(fresh.find());
  return fresh.fetch(web, assumed);
}

// bad: keys that were refused. Whoever finds others in their place takes those.
Asked<void> Api::renew(Web& web, const Keys* bad) {
  bool again = false;
  bool usable = false;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t left_ms = keys_.expires_ms - web.now_ms();
    const bool hold = keys_.expires_ms == 0 || left_ms > kRenewBeforeMs;
    const bool same = bad != nullptr && same_keys(*bad, keys_);
    if (!keys_.key.id.empty() && hold && !same) return {};
    again = !keys_.key.id.empty();
    usable = again && !same && left_ms > 0;
  }
  auto keys = find_keys(web, again);
  // An expired login gives no new keys. The old keys still end machines in these minutes.
  if (!keys && usable) return {};
  if (!keys) return tl::make_unexpected(no_keys(keys.error()));
  const std::lock_guard lock(mutex_);
  keys_ = *std::move(keys);
  return {};
}

Result<Keys> Api::assume(Web& web, const Keys& base, const Profile& role) {
  Query query("AssumeRole", kStsVersion);
  query.add("RoleArn", role.role).add("RoleSessionName", "lockstep");
  if (!role.external_id.empty()) query.add("ExternalId", role.external_id);
  const auto body = signed_ask(web, ApiCall::of(query, ring_.region(), Service::sts), base);
  if (!body) return tl::make_unexpected(body.error().error());
  return parse_assumed_role(*body);
}

Asked<std::string> Api::ask(Web& web, const ApiCall& call) {
  if (const auto is = ready(web); !is) return tl::make_unexpected(is.error());
  const double pace = pace_of(ring_.ground());
  Backoff passing(web.now_ms(), call.patience, pace);
  Backoff quiet(web.now_ms(), call.silence, pace);
  bool maybe_done = false;
  while (true) {
    auto answer = once(web, call);
    if (answer) return answer;
    Trouble& trouble = answer.error();
    trouble.maybe_done = maybe_done = maybe_done || trouble.maybe_done;
    const bool soon = call.soon && trouble.meaning == Meaning::soon;
    std::optional<std::chrono::milliseconds> pause;
    if (trouble.kind == Trouble::Kind::silent)
      pause = quiet.next(web.now_ms(), "");
    else if (soon || (trouble.kind == Trouble::Kind::refused && trouble.meaning == Meaning::again))
      pause = passing.next(web.now_ms(), soon ? "1" : trouble.retry_after);
    if (!pause) return answer;
    if (const Status paused = web.pause(*pause); !paused)
      return tl::make_unexpected(silent(call, paused.error(), maybe_done));
  }
}

Asked<std::string> Api::once(Web& web, const ApiCall& call) {
  for (int tries = 0;; ++tries) {
    const Keys keys = this->keys();
    auto answer = signed_ask(web, call, keys);
    const bool good = answer.has_value();
    const bool old = !good && !answer.error().again && may_be_old(keys, answer.error().code);
    if (old && tries == 0)
      answer.error().again = renew(web, &keys) && !same_keys(keys, this->keys());
    if (!good && answer.error().again && tries < 2) continue;
    if (good) {
      const std::lock_guard lock(mutex_);
      worked_in_.insert(call.region);
    }
    return answer;
  }
}

Asked<std::string> Api::signed_ask(Web& web, const ApiCall& call, const Keys& keys) {
  const auto endpoint = endpoint_of(ring_, call);
  if (!endpoint) return tl::make_unexpected(silent(call, endpoint.error(), false));
  Question question = question_of(call, *endpoint);
  const std::int64_t offset = clock_offset_ms();
  codec::SigV4Request request{
      .region = call.region,
      .service = row_of(call.service).sign_as,
      .unix_time = (web.now_ms() + offset) / 1000,
      .host = endpoint->host,
      .path = endpoint->path,
      .body = call.body,
  };
  for (const http::Field& field : question.fields)
    request.headers.emplace_back(field.name, field.value);
  for (auto& [name, value] : codec::sigv4_sign(keys.key, request))
    question.fields.push_back({.name = std::move(name), .value = std::move(value)});
  const Reply reply = web.ask(question);
  if (!reply.answer) return tl::make_unexpected(silent(call, reply.answer.error(), reply.sent));
  if (reply.answer->head.status == 200) return reply.answer->body;
  Trouble trouble = refused(call, *reply.answer);
  if (trouble.meaning == Meaning::keys || trouble.meaning == Meaning::keys_here)
    trouble.hint = "the keys are those of " + keys.from;
  trouble.again = blames_clock(trouble.code) &&
                  mends_clock(web, offset, reply.answer->head.field("date"), call);
  return tl::make_unexpected(std::move(trouble));
}

Asked<codec::XmlNode> Api::ask_xml(Web& web, const ApiCall& call) {
  auto body = ask(web, call);
  if (!body) return tl::make_unexpected(std::move(body).error());
  auto root = codec::parse_xml(*body);
  if (!root) return tl::make_unexpected(silent(call, root.error(), true));
  return std::move(*root);
}

Asked<nlohmann::json> Api::ask_json(Web& web, const ApiCall& call) {
  auto body = ask(web, call);
  if (!body) return tl::make_unexpected(std::move(body).error());
  auto parsed = codec::parse_json(*body, {.bytes = 16U << 20});
  if (!parsed.is_object())
    return tl::make_unexpected(silent(
        call, {.code = Errc::corrupt, .message = "the answer is no JSON", .hint = {}}, true));
  return parsed;
}

Asked<std::vector<codec::XmlNode>> Api::ask_pages(Web& web, const Query& query,
                                                  const std::string& region,
                                                  std::string_view list) {
  std::vector<codec::XmlNode> items;
  std::string token;
  for (int page = 0; page < kMostPages; ++page) {
    Query next = query;
    if (!token.empty()) next.add("NextToken", token);
    auto root = ask_xml(web, ApiCall::of(next, region));
    if (!root) return tl::make_unexpected(std::move(root).error());
    const auto& more = root->list(list);
    items.insert(items.end(), more.begin(), more.end());
    token = root->text("nextToken");
    if (token.empty()) return items;
  }
  return tl::make_unexpected(silent(ApiCall::of(query, region), "the answer has no end"));
}

bool Api::mends_clock(Web& web, std::int64_t signed_with, std::string_view date,
                      const ApiCall& call) {
  const auto theirs = http::parse_http_date(date);
  if (!theirs) return false;
  const std::int64_t offset = *theirs * 1000 - web.now_ms();
  if (std::abs(offset - signed_with) < kMostSkewMs) return false;
  const std::lock_guard lock(mutex_);
  // Another thread may have found out since this was signed.
  if (std::abs(offset - offset_ms_) < kMostSkewMs) return true;
  offset_ms_ = offset;
  log::warning(
      "this machine's clock is {} min {} that of AWS in {}: set it; until then requests "
      "are signed with AWS's time",
      (std::abs(offset) + 30'000) / 60'000, offset > 0 ? "behind" : "ahead of", call.region);
  return true;
}

bool Api::keys_work_elsewhere(const std::string& region) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(worked_in_.begin(), worked_in_.end(),
                     [&](const std::string& other) { return other != region; });
}

std::int64_t Api::clock_offset_ms() const {
  const std::lock_guard lock(mutex_);
  return offset_ms_;
}

// Each login gives other temporary keys. Users have found, and AWS does not document, that the ids
// of an account's keys share their first 12 characters. Otherwise answers are only asked more
// often.
std::string Api::account_mark() const {
  constexpr std::size_t kOfAccount = 12;
  const Keys now = keys();
  if (now.key.session_token.empty()) return now.key.id;
  return fmt::format("{} {}", now.key.id.substr(0, kOfAccount), now.from);
}

}  // namespace lockstep::cloud::aws
