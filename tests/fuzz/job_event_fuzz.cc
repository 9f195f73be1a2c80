// Lines of --events and answers of agents: any bytes give printable lines, and what is printed is
// read back as the same.
#include "base/error.h"
#include "base/text.h"
#include "status/event_ring.h"
#include "status/trace.h"

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <string_view>
#include <vector>

using namespace lockstep;  // NOLINT

namespace {

void check_event(const status::JobEvent& event) {
  const std::string line = status::job_event_json(event);
  LOCKSTEP_CHECK(line.size() <= 4096 && line.find('\n') == std::string::npos);
  const auto again = status::read_job_event(line);
  LOCKSTEP_CHECK(again && again->kind == event.kind && again->rank == event.rank &&
                 again->number == event.number);
  const std::string text = status::job_event_text(event);
  LOCKSTEP_CHECK(printable(text, 8192) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<status::JobEvent> events;
  for (const std::string& line : split(std::string(bytes), '\n'))
    if (auto event = status::read_job_event(line)) {
      check_event(*event);
      events.push_back(std::move(*event));
    }
  LOCKSTEP_CHECK(!status::trace_json(events).empty());
  if (const auto answer = status::read_event_answer(bytes))
    for (const status::JobEvent& event : answer->events)
      check_event(event);
  if (const auto answer = status::answer_of_report(bytes, 0))
    LOCKSTEP_CHECK(status::read_event_answer(*answer).has_value());
  return 0;
}
