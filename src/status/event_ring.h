// The latest events of an agent, for commands that ask. Bounded by age and by size, since a job may
// run for months. Pure.
#pragma once

#include "status/job_event.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::status {

class EventRing {
 public:
  struct Limits {
    std::int64_t age_ms = 24LL * 3600 * 1000;
    std::size_t bytes = 4UL << 20;
  };

  EventRing() = default;
  explicit EventRing(const Limits& limits) : limits_(limits) {}

  // Gives the event the next number, keeps it, and returns the number.
  std::int64_t add(JobEvent event);
  // Returns the line of the newest event. There must be one.
  const std::string& newest();
  // Returns the answer to "what came after this number": a JSON object of at most `bytes`. agent
  // and node name the asked agent. The oldest events come first; `next` is the number to ask with
  // again, and `more` is true if more events are there already.
  std::string answer(const std::string& agent, const std::string& node, std::int64_t after,
                     std::size_t bytes = 1UL << 20);
  // Returns the latest lines, the oldest first: at most so many, and so many bytes.
  std::vector<std::string> latest(std::size_t most, std::size_t bytes);
  std::int64_t last() const { return last_; }
  // Returns the cost of the printed events.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Kept {
    std::int64_t number;
    std::int64_t time_ms;
    std::string line;
  };

  void print_fresh();

  Limits limits_;
  // Most jobs are never asked, and a short one should not wait for lines of JSON.
  std::vector<JobEvent> fresh_;  // not printed yet
  std::deque<Kept> kept_;
  std::size_t bytes_ = 0;
  std::int64_t last_ = 0;
};

// An answer as a command reads it.
struct EventAnswer {
  std::string agent = {};
  std::string node = {};
  std::int64_t next = 0;
  bool more = false;
  std::vector<JobEvent> events = {};
};

// Returns whether an answer of the same agent is in the list.
bool is_known(const std::vector<EventAnswer>& answers, const EventAnswer& answer);

// Makes an answer of the report of a job that has ended (docs/report.md), whose "events" are the
// latest ones. nullopt: the report has none.
std::optional<std::string> answer_of_report(std::string_view report, std::int64_t after);

std::string event_answer_json(const EventAnswer& answer);
// Reads the answer of another version, or of a host that may be hostile. Lines that are no events
// are left out. Fails with Errc::corrupt.
Result<EventAnswer> read_event_answer(std::string_view text);

}  // namespace lockstep::status
