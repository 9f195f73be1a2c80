// The few events that people are told about (--notify, --notify-exec), and their texts. Pure.
#pragma once

#include "status/job_event.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::agent {

struct Notice {
  std::string_view what;  // start, failure, restart, hang, end
  std::string job;        // "train.py"
  status::JobEvent event;
};

// Picks the events that are worth a notice: of several failures in an attempt, only the first.
class NoticeChoice {
 public:
  // nullopt: nobody is told.
  std::optional<std::string_view> what(const status::JobEvent& event);

 private:
  bool started_ = false;
  std::int64_t failed_attempt_ = 0;
};

// "train.py: hang on gpu-1 (attempt 2): no rank has run for 31 s".
std::string notice_text(const Notice& notice);
// The event's JSON with "notice", "job" and "text" in front; or Slack's form, {"text": ...}.
std::string notice_json(const Notice& notice);
std::string slack_json(const Notice& notice);

}  // namespace lockstep::agent
