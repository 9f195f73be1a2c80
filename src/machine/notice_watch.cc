#include "machine/notice_watch.h"

#include "base/text.h"
#include "codec/json_members.h"
#include "codec/url.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

namespace lockstep::machine {
namespace {

constexpr std::string_view kUsualBase = "http://169.254.169.254";
constexpr std::chrono::seconds kPoll{2};
constexpr std::chrono::seconds kPatience{5};
constexpr int kWait = 60;  // seconds after which a waiting service answers anyway
constexpr std::chrono::seconds kWaitPatience{90};
constexpr std::size_t kMostNotice = 64UL << 10;
constexpr int kOk = 200;
constexpr int kUnauthorized = 401;

}  // namespace

std::string action_words(std::string_view body) {
  const nlohmann::json json = codec::parse_json(body, {.bytes = kMostNotice});
  if (!json.is_object()) return {};
  const std::string action = codec::text_member(json, "action");
  const std::string time = codec::text_member(json, "time");
  if (action.empty()) return {};
  return printable(time.empty() ? action : action + " " + time);
}

Result<std::unique_ptr<NoticeWatch>> NoticeWatch::open(io::Loop& loop, NoticeSource source,
                                                       const std::string& base,
                                                       std::function<void(std::string)> on_notice) {
  LOCKSTEP_TRY_ASSIGN(
      const codec::Url url,
      codec::parse_url(base.empty() ? kUsualBase : std::string_view(base), "the metadata service"));
  return std::unique_ptr<NoticeWatch>(new NoticeWatch(
      loop, source, http::Origin{.host = url.host, .port = url.port, .tls = nullptr},
      std::move(on_notice)));
}

NoticeWatch::NoticeWatch(io::Loop& loop, NoticeSource source, http::Origin origin,
                         std::function<void(std::string)> on_notice)
    : source_(source),
      on_notice_(std::move(on_notice)),
      client_(loop, std::move(origin)),
      turn_(loop) {
  if (source_ != NoticeSource::none) turn_.start({}, [this] { ask(); });
}

void NoticeWatch::ask() {
  if (source_ == NoticeSource::wait_for_change) return ask_change();
  token_.empty() ? ask_token() : ask_action();
}

void NoticeWatch::later() {
  turn_.start(kPoll, [this] { ask(); });
}

void NoticeWatch::tell(std::string words) {
  const auto told = std::exchange(on_notice_, {});  // may destroy this
  if (told) told(std::move(words));
}

void NoticeWatch::ask_token() {
  // AWS's IMDSv2 wants a token first, here for six hours (21,600 s).
  exchange_ = client_.ask({.method = "PUT",
                           .target = "/latest/api/token",
                           .fields = {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}},
                           .body = {},
                           .timeout = kPatience,
                           .body_limit = kMostNotice},
                          [this](Result<http::Answer> answer) {
                            // Never give up: the service may be late after boot, and a missed
                            // notice costs the work since the last checkpoint.
                            if (!answer || answer->head.status != kOk) return later();
                            token_ = std::string(strip(answer->body));
                            token_.empty() ? later() : ask_action();
                          });
}

// AWS answers 404 until shortly before the end.
void NoticeWatch::ask_action() {
  exchange_ = client_.ask({.target = "/latest/meta-data/spot/instance-action",
                           .fields = {{"x-aws-ec2-metadata-token", token_}},
                           .body = {},
                           .timeout = kPatience,
                           .repeatable = true,
                           .body_limit = kMostNotice},
                          [this](Result<http::Answer> answer) {
                            // The token has expired: get another one.
                            if (answer && answer->head.status == kUnauthorized) token_.clear();
                            if (!answer || answer->head.status != kOk) return later();
                            std::string words = action_words(answer->body);
                            words.empty() ? later() : tell(std::move(words));
                          });
}

// Google's service answers the first request at once. With last_etag it answers when the value
// changes, or after timeout_sec.
void NoticeWatch::ask_change() {
  std::string target = "/computeMetadata/v1/instance/preempted";
  if (!etag_.empty())
    target += fmt::format("?wait_for_change=true&last_etag={}&timeout_sec={}",
                          codec::percent_code(etag_), kWait);
  exchange_ = client_.ask({.target = std::move(target),
                           .fields = {{"metadata-flavor", "Google"}},
                           .body = {},
                           .timeout = kWaitPatience,
                           .repeatable = true,
                           .body_limit = kMostNotice},
                          [this](Result<http::Answer> answer) {
                            if (answer && answer->head.status == kOk) return take_change(*answer);
                            // Without an etag the next request is answered at once.
                            etag_.clear();
                            later();
                          });
}

void NoticeWatch::take_change(const http::Answer& answer) {
  if (to_upper(strip(answer.body)) == "TRUE") return tell("preempted");
  std::string etag(answer.head.field("etag"));
  const bool again = etag.empty() || std::exchange(etag_, std::move(etag)) == etag_;
  // A service that ignores wait_for_change must not be asked in a tight loop.
  again ? later() : turn_.start({}, [this] { ask(); });
}

}  // namespace lockstep::machine
