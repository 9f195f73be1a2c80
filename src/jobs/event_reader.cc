#include "jobs/event_reader.h"

#include "proc/signals.h"

#include <algorithm>
#include <utility>

namespace lockstep::jobs {

Status EventReader::pause_here(std::chrono::milliseconds time) {
  const int signal = proc::take_stop_signal(time);
  if (signal == 0) return {};
  return Failure(Error{Errc::canceled, "stopped by a signal", {}, signal});
}

Result<std::vector<status::JobEvent>> EventReader::next() {
  const Status asked = ask(needs_pause() ? 1 : kMostQuestions);
  // The job may end before its hosts answer again.
  const bool has_part = !read_.empty() && !asked && asked.error().code == Errc::unavailable;
  if (!asked && !has_part) return Failure(asked.error());
  return sorted();
}

Result<std::vector<status::JobEvent>> EventReader::all() {
  LOCKSTEP_TRY(ask(kMostQuestions));
  return sorted();
}

// Answers in parts, and agents that are new: each needs one more question.
Status EventReader::ask(int questions) {
  for (int question = 0; question < questions; ++question) {
    if (question > 0 && needs_pause()) LOCKSTEP_TRY(pause_(job_.pause()));
    LOCKSTEP_TRY_ASSIGN(auto answers, job_.events(after_));
    answered_ = !answers.empty();
    if (take(std::move(answers))) break;
  }
  return {};
}

std::vector<status::JobEvent> EventReader::sorted() {
  std::vector<status::JobEvent> events = std::exchange(read_, {});
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.time_ms < b.time_ms; });
  return events;
}

bool EventReader::take(std::vector<status::EventAnswer> answers) {
  bool more = false;
  bool anew = false;
  const std::size_t known = read_.size();
  const std::int64_t asked = after_;
  ended_ = !answers.empty();
  std::int64_t least = answers.empty() ? after_ : INT64_MAX;
  std::int64_t least_of_parts = INT64_MAX;
  for (status::EventAnswer& answer : answers) {
    const bool is_new = !last_.contains(answer.agent);
    std::int64_t& last = last_[answer.agent];
    // All agents are asked with one number. An agent that is new may have smaller ones, which come
    // first: leave out its answer, and ask for all of its events.
    if (is_new && after_ > 0) {
      anew = true;
      ended_ = false;
      continue;
    }
    for (status::JobEvent& event : answer.events) {
      if (event.number <= last) continue;
      last = event.number;
      over_[answer.agent] = event.kind == status::JobEventKind::ended;
      read_.push_back(std::move(event));
    }
    more = more || answer.more;
    ended_ = ended_ && over_[answer.agent];
    least = std::min(least, last);
    // Ask for the rest of a part alone: another agent may have few events in all.
    if (answer.more) least_of_parts = std::min(least_of_parts, last);
  }
  after_ = anew ? 0 : more ? least_of_parts : least;
  // A host may lie about more.
  const bool moved = read_.size() > known || after_ != asked;
  return !moved || (!more && !anew);
}

}  // namespace lockstep::jobs
