// lockstep notify-post: posts its standard input to the webhook of --notify. The agent starts it
// for each notice, so that a slow network never holds up a job. People do not call this.
#include "agent/notifier.h"
#include "base/text.h"
#include "cli/subcommand.h"
#include "codec/base64.h"
#include "codec/url.h"
#include "http/client.h"
#include "io/loop.h"

#include <fmt/core.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::chrono::milliseconds kPostLimit{6000};  // twice, and the agent's limit is 15 s
constexpr std::chrono::milliseconds kPauseBeforeAgain{1000};
constexpr std::size_t kMostNotice = 1UL << 20;

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string notice_input() {
  std::string text;
  char chunk[16384];
  for (ssize_t got = 0;
       text.size() < kMostNotice && (got = read(STDIN_FILENO, chunk, sizeof chunk)) > 0;)
    text.append(chunk, static_cast<std::size_t>(got));
  return text;
}

Result<http::Origin> origin_of(const codec::Url& url) {
  http::Origin origin{.host = url.host, .port = url.port, .tls = nullptr};
  LOCKSTEP_TRY_ASSIGN(origin.proxy, http::choose_proxy(variable, url.host, url.port, url.tls));
  if (!url.tls) return origin;
  LOCKSTEP_TRY_ASSIGN(
      origin.tls, http::TlsContext::make({.ca_file = {},
                                          .more_ca_file = variable("LOCKSTEP_CA_FILE").value_or(""),
                                          .cert_file = {},
                                          .key_file = {},
                                          .hint = "name its authority in LOCKSTEP_CA_FILE"}));
  return origin;
}

// Posts once. The path may be the secret, so errors show the host alone.
Result<int> post_once(const codec::Url& url, const http::Origin& origin, const std::string& body) {
  http::Call call{.method = "POST",
                  .target = url.target,
                  .fields = {{"Content-Type", "application/json"},
                             {"User-Agent", "lockstep/" LOCKSTEP_VERSION}},
                  .body = body,
                  .timeout = kPostLimit,
                  .body_limit = 64UL << 10,
                  .shown = "POST to " + url.host};
  if (!url.user.empty())
    call.fields.push_back(
        {"Authorization", "Basic " + codec::base64_encode(url.user + ":" + url.password)});
  io::Loop loop;
  http::Client client(loop, origin);
  std::optional<Result<http::Answer>> answer;
  const auto exchange = client.ask(std::move(call), [&](Result<http::Answer> got) {
    answer = std::move(got);
    loop.stop();
  });
  loop.run();
  if (!answer) return fail(Errc::unavailable, "POST to " + url.host + ": no answer");
  if (!*answer) return Failure(answer->error());
  return (*answer)->head.status;
}

// A busy server may take the notice a moment later.
bool is_worth_another_try(const Result<int>& status) {
  return !status ? status.error().code != Errc::denied : *status == 429 || *status >= 500;
}

Status post_notice(const Call& /*call*/) {
  LOCKSTEP_TRY_ASSIGN(const codec::Url url,
                      codec::parse_url(variable(agent::kWebhookVariable).value_or(""), "--notify"));
  const std::string body = notice_input();
  LOCKSTEP_TRY_ASSIGN(const http::Origin origin, origin_of(url));
  auto status = post_once(url, origin, body);
  if (is_worth_another_try(status)) {
    usleep(std::chrono::microseconds(kPauseBeforeAgain).count());
    status = post_once(url, origin, body);
  }
  if (!status) return Failure(status.error());
  if (*status < 200 || *status > 299)
    return fail(Errc::denied, fmt::format("{} answered with status {}", url.host, *status));
  return {};
}

}  // namespace

extern constinit const Subcommand kNotifyPost{.name = "notify-post",
                                              .summary = "post a notice to a webhook",
                                              .run = run_status<post_notice>,
                                              .fails_with = always(ExitCode::failed),
                                              .listed = false};

}  // namespace lockstep::cli
