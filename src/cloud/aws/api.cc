#include "cloud/aws/api.h"

#include "base/log.h"
#include "base/text.h"
#include "cloud/pace.h"
#include "codec/url.h"
#include "http/date.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace lockstep::cloud::aws {
namespace {

struct ServiceRow {
  const char* host;  // before ".REGION.amazonaws.com"
  const char* sign_as;
  const char* variable;  // AWS_ENDPOINT_URL_...
  const char* target;    // X-Amz-Target's first half; "": the query protocol
};

// In the order of Service. The price list's host differs from the service name in its signature.
constexpr ServiceRow kServices[] = {
    {"ec2", "ec2", "EC2", ""},
    {"sts", "sts", "STS", ""},
    {"ssm", "ssm", "SSM", "AmazonSSM"},
    {"api.pricing", "pricing", "PRICING", "AWSPriceListService"},
    {"servicequotas", "servicequotas", "SERVICE_QUOTAS", "ServiceQuotasV20190624"},
};

constexpr std::int64_t kRenewBeforeMs = 300'000;
constexpr int kMostPages = 50;
// AWS accepts a clock that is some minutes off, so a smaller difference did not cause the refusal.
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
  // A variable for one service wins over AWS_ENDPOINT_URL, as in AWS's own tools.
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
                fmt::format("'{}' cannot be a region of AWS", printable(call.region, 60)));
  // AWS's regions in China have their own domain, amazonaws.com.cn.
  const std::string host = fmt::format("{}.{}.amazonaws.com{}", row.host, call.region,
                                       call.region.starts_with("cn-") ? ".cn" : "");
  return Endpoint{.base = "https://" + host, .host = host, .path = "/"};
}

std::string asked_text(const ApiCall& call) {
  return fmt::format("{} in {}", call.action, printable(call.region, 40));
}

ApiFailure no_keys(const Error& error) {
  ApiFailure failure;
  failure.kind = ApiFailure::Kind::no_keys;
  failure.errc = Errc::not_found;
  failure.message = error.message;
  failure.hint = error.hint;
  return failure;
}

Errc errc_of(Meaning meaning) {
  if (meaning == Meaning::again) return Errc::unavailable;
  return meaning == Meaning::ours ? Errc::invalid_input : Errc::denied;
}

bool same_keys(const Keys& a, const Keys& b) {
  return a.key.id == b.key.id && a.key.session_token == b.key.session_token;
}

// EC2 reports expired keys as an expired request, and replaced keys as invalid. Reading a key file
// again is cheap. A program is run again only if its keys expire.
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

Meaning meaning_of(const ApiFailure& failure) {
  if (failure.kind == ApiFailure::Kind::no_keys) return Meaning::keys;
  if (!failure.refused()) return Meaning::unknown;
  return failure.status == 0 ? Meaning::ours : meaning_of(failure.status, failure.code);
}

ApiFailure refused_here(std::string code, std::string message, std::string hint) {
  ApiFailure failure = refusal_with(0, std::move(code), std::move(message));
  failure.errc = Errc::invalid_input;
  failure.hint = std::move(hint);
  return failure;
}

// AWS names the kind of policy in its answer: "... with an explicit deny in a service control
// policy".
bool denied_by_organization(const ApiFailure& failure) {
  return meaning_of(failure) == Meaning::not_allowed &&
         failure.said.find("service control policy") != std::string::npos;
}

// Makes one call, signed anew for each try.
class Api::Try : public ApiTry {
 public:
  // keys: nullptr for the account's keys, which are renewed once AWS reports them as expired.
  Try(Api& api, const ApiCall& call, const Keys* keys)
      : api_(api), call_(call), renews_(keys == nullptr), keys_(keys ? *keys : Keys{}) {}

  Asked<Question> question(Web& web) override {
    const auto endpoint = endpoint_of(api_.ring_, call_);
    if (!endpoint) return tl::make_unexpected(without_answer(endpoint.error(), false));
    if (renews_) keys_ = api_.keys();
    Question question = question_of(call_, *endpoint);
    // AWS refuses signatures whose time is some minutes off, so sign with AWS's clock once known.
    signed_with_ms_ = api_.clock_offset_ms();
    codec::SigV4Request request{
        .region = call_.region,
        .service = row_of(call_.service).sign_as,
        .unix_time = (web.now_ms() + signed_with_ms_) / 1000,
        .host = endpoint->host,
        .path = endpoint->path,
        .body = call_.body,
    };
    for (const http::Field& field : question.fields)
      request.headers.emplace_back(field.name, field.value);
    for (auto& [name, value] : codec::sigv4_sign(keys_.key, request))
      question.fields.push_back({.name = std::move(name), .value = std::move(value)});
    return question;
  }

  ApiFailure refusal(const http::Answer& answer) override {
    const int status = answer.head.status;
    // A proxy may answer with a page of any size. An error of AWS is short.
    ErrorWords error = parse_error(std::string_view(answer.body).substr(0, 64U << 10));
    ApiFailure failure = refusal_with(status, std::move(error.code), {});
    failure.said = std::move(error.message);
    failure.message =
        fmt::format("{}: {}{}{}", asked_text(call_),
                    failure.code.empty() ? fmt::format("HTTP {}", status) : failure.code,
                    failure.said.empty() ? "" : ": ", failure.said);
    const Meaning meaning = meaning_of(failure);
    const bool soon = call_.soon && meaning == Meaning::soon;
    // A new object becomes visible soon: retry each second instead of backing off.
    if (soon) failure.retry_after = "1";
    failure.passing = soon || meaning == Meaning::again;
    failure.errc = errc_of(meaning);
    if (meaning == Meaning::keys || meaning == Meaning::keys_here)
      failure.hint = "the keys are those of " + keys_.from;
    return failure;
  }

  bool mends(Web& web, const http::Answer& answer, const ApiFailure& failure) override {
    if (blames_clock(failure.code) &&
        api_.mends_clock(web, signed_with_ms_, answer.head.field("date"), call_))
      return true;
    // Renew once at most, and retry only if the renewal gave other keys.
    if (!renews_ || !may_be_old(keys_, failure.code) || std::exchange(renewed_, true)) return false;
    return api_.renew(web, &keys_) && !same_keys(keys_, api_.keys());
  }

 private:
  Api& api_;
  const ApiCall& call_;
  bool renews_;
  Keys keys_;
  std::int64_t signed_with_ms_ = 0;  // the clock offset of the last try
  bool renewed_ = false;
};

Keys Api::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

// again: other programs may have renewed temporary keys in their files. A new ring reads the files,
// since other threads use ring_.
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

// bad: the keys that AWS refused, or nullptr. If another thread has replaced the keys, uses those.
Asked<void> Api::renew(Web& web, const Keys* bad) {
  bool again = false;
  // Decide under the lock, and ask without it: finding keys may run a program or wait for the
  // network.
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
  // An expired login gives no new keys. The old keys can still terminate machines for some minutes.
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
  const ApiCall call = ApiCall::of(query, ring_.region(), Service::sts);
  Try one(*this, call, &base);
  const auto body = ask_api(web, one, {});
  if (!body) return tl::make_unexpected(body.error().error());
  return parse_assumed_role(*body);
}

Asked<std::string> Api::ask(Web& web, const ApiCall& call) {
  if (const auto is = ready(web); !is) return tl::make_unexpected(is.error());
  Try one(*this, call, nullptr);
  auto body = ask_api(web, one,
                      {.repeat = Repeat::always,
                       .patience = call.patience,
                       .absence = call.silence,
                       .pace = pace_of(ring_.ground())});
  if (body) {
    const std::lock_guard lock(mutex_);
    // If keys work in another region, a refusal means a region that the account has not enabled.
    worked_in_.insert(call.region);
  } else if (const std::string asked = asked_text(call); !body.error().message.starts_with(asked)) {
    body.error().message = asked + ": " + body.error().message;
  }
  return body;
}

Asked<codec::XmlNode> Api::ask_xml(Web& web, const ApiCall& call) {
  auto body = ask(web, call);
  if (!body) return tl::make_unexpected(std::move(body).error());
  auto root = codec::parse_xml(*body);
  // The status said success, so AWS did carry out the call. Report a cut answer as unanswered.
  if (!root) return tl::make_unexpected(unreadable(asked_text(call) + ": " + root.error().message));
  return std::move(*root);
}

Asked<nlohmann::json> Api::ask_json(Web& web, const ApiCall& call) {
  auto body = ask(web, call);
  if (!body) return tl::make_unexpected(std::move(body).error());
  auto parsed = codec::parse_json(*body, {.bytes = 16U << 20});
  if (!parsed.is_object())
    return tl::make_unexpected(unreadable(asked_text(call) + ": the answer is not JSON"));
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
  return tl::make_unexpected(
      unreadable(asked_text(ApiCall::of(query, region)) + ": the answer has no end"));
}

// Returns whether a try with a corrected clock makes sense. signed_with: the offset of the refused
// try, in milliseconds.
bool Api::mends_clock(Web& web, std::int64_t signed_with, std::string_view date,
                      const ApiCall& call) {
  const auto theirs = http::parse_http_date(date);
  if (!theirs) return false;
  const std::int64_t offset = *theirs * 1000 - web.now_ms();
  if (std::abs(offset - signed_with) < kMostSkewMs) return false;
  const std::lock_guard lock(mutex_);
  // Another thread may have corrected the clock since this call was signed.
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
