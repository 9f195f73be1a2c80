// Applies --events, --notify and --notify-exec.
#include "base/shell_words.h"
#include "base/text.h"
#include "codec/url.h"
#include "launch/rules.h"

#include <string_view>
#include <utility>

namespace lockstep::launch {
namespace {

constexpr std::string_view kSlackScheme = "slack+";
constexpr std::string_view kSlackHost = "hooks.slack.com";

Status apply_webhook(std::string_view text, EventConfig& events) {
  text = strip(text);
  const bool named = text.starts_with(kSlackScheme);
  if (named) text.remove_prefix(kSlackScheme.size());
  // The error does not quote the URL.
  auto url = codec::parse_url(text, "--notify");
  if (!url) {
    Error error = std::move(url).error();
    error.hint =
        "write http://, https://, or slack+https:// for another server that takes "
        "Slack's form";
    return Failure(std::move(error));
  }
  events.url = std::string(text);
  events.slack = named || url->host == kSlackHost;
  return {};
}

}  // namespace

Status apply_events(const RawOptions& raw, LaunchConfig& config) {
  EventConfig& events = config.events;
  if (raw.events && raw.events->empty())
    return fail(Errc::invalid_input, "--events needs a file name");
  // The workers print to stdout.
  if (raw.events == "-")
    return fail(Errc::invalid_input, "--events must be a file, got -",
                "lockstep events -f shows the events of a running job");
  events.file = raw.events;
  if (raw.notify) LOCKSTEP_TRY(apply_webhook(*raw.notify, events));
  if (!raw.notify_exec) return {};
  auto words = shell_words(*raw.notify_exec);
  if (!words) return fail(Errc::invalid_input, "--notify-exec ends inside quotes");
  if (words->empty() || words->front().empty())
    return fail(Errc::invalid_input, "--notify-exec needs a program");
  events.program = std::move(*words);
  return {};
}

}  // namespace lockstep::launch
