// Words the notices about a job.
#include "agent/notice.h"

#include "base/text.h"
#include "codec/json.h"

#include <fmt/core.h>

namespace lockstep::agent {

using status::JobEventKind;

std::optional<std::string_view> NoticeChoice::what(const status::JobEvent& event) {
  switch (event.kind) {
    case JobEventKind::ranks_started:
      if (started_) return std::nullopt;
      started_ = true;
      return "start";
    case JobEventKind::failed:
      if (failed_attempt_ == event.attempt) return std::nullopt;
      failed_attempt_ = event.attempt;
      return "failure";
    case JobEventKind::restarting:
    case JobEventKind::nodes_changed:
      return "restart";
    case JobEventKind::hung:
      return "hang";
    case JobEventKind::ended:
      return "end";
    default:
      return std::nullopt;
  }
}

std::string notice_text(const Notice& notice) {
  std::string text = fmt::format("{}: {} on {}", notice.job, notice.what, notice.event.node);
  if (notice.event.attempt > 1) text += fmt::format(" (attempt {})", notice.event.attempt);
  if (!notice.event.words.empty()) text += ": " + printable(notice.event.words, 2000);
  return text;
}

std::string notice_json(const Notice& notice) {
  nlohmann::ordered_json json{
      {"notice", notice.what}, {"job", notice.job}, {"text", notice_text(notice)}};
  json.update(codec::parse_ordered_json(status::job_event_json(notice.event)));
  return codec::print_json(json);
}

// Slack reads <, > and & as marks of links.
std::string slack_json(const Notice& notice) {
  std::string text = notice_text(notice);
  replace_all(text, "&", "&amp;");
  replace_all(text, "<", "&lt;");
  replace_all(text, ">", "&gt;");
  return codec::print_json(nlohmann::ordered_json{{"text", text}});
}

}  // namespace lockstep::agent
