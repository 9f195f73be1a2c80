// Writes and reads the events of a job.
#include "status/job_event.h"

#include "base/date_text.h"
#include "base/text.h"
#include "codec/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace lockstep::status {
namespace {

// A line has at most PIPE_BUF bytes: every byte of a text may become two, as for '"'.
constexpr std::size_t kMostWords = 1300;
constexpr std::size_t kMostName = 200;
constexpr std::size_t kMostNumbers = 12;
constexpr std::size_t kMostLine = 64UL << 10;  // of another version
constexpr std::int64_t kMostCount = 1'000'000'000'000'000;
constexpr int kMostRank = 1 << 24;

// Cuts a text that printable() makes longer: a control character becomes four bytes.
std::string short_text(std::string_view text, std::size_t most) {
  std::string made = printable(text, most);
  return made.size() <= most + 8 ? made : printable(text, most / 5);
}

// Reads the kind apart from the other members: an unknown word is no fault.
JobEventKind kind_of(std::string_view word) {
  const auto* const at = std::find(kEventWords.begin(), kEventWords.end(), word);
  return at == kEventWords.end() ? JobEventKind::other
                                 : static_cast<JobEventKind>(at - kEventWords.begin());
}

}  // namespace

static void fields(codec::JsonFields& io, JobEvent& event) {
  io("time_ms", event.time_ms, {0, kMostCount});
  io("agent", event.agent);
  io("number", event.number, {0, kMostCount});
  io("attempt", event.attempt, {0, kMostCount});
  io("node", event.node);
  io.optional("rank", event.rank);
  io("words", event.words);
  io("numbers", event.numbers);
}

std::string_view event_word(JobEventKind kind) {
  return kEventWords[static_cast<std::size_t>(kind)];
}

double JobEvent::number_of(const std::string& name, double otherwise) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? otherwise : found->second;
}

std::string job_event_json(const JobEvent& event) {
  JobEvent bounded = event;
  bounded.words = short_text(event.words, kMostWords);
  bounded.node = short_text(event.node, kMostName);
  bounded.agent = short_text(event.agent, kMostName);
  while (bounded.numbers.size() > kMostNumbers)
    bounded.numbers.erase(std::prev(bounded.numbers.end()));
  nlohmann::ordered_json json{{"event", event_word(event.kind)}};
  json.update(codec::write_fields(bounded));
  // Counts are printed as people write them: 8, not 8.0.
  for (const auto& [name, number] : bounded.numbers)
    if (std::trunc(number) == number && std::abs(number) < kMostCount)
      json["numbers"][name] = static_cast<std::int64_t>(number);
  return codec::print_json(json);
}

Result<JobEvent> read_job_event(std::string_view line) {
  const auto json = codec::parse_json(line, {.bytes = kMostLine, .depth = 8, .members = 256});
  JobEvent event;
  LOCKSTEP_TRY(codec::read_fields(
      json, event,
      {.strict = false, .text = kMostLine, .list = kMostNumbers, .printable = kMostWords}));
  if (!json.contains("event") || !json["event"].is_string() || event.time_ms == 0)
    return fail(Errc::corrupt, "not an event of a job");
  if (event.rank && (*event.rank < 0 || *event.rank > kMostRank)) event.rank.reset();
  const std::string word = printable(json["event"].get<std::string>(), kMostName);
  event.kind = kind_of(word);
  if (event.kind == JobEventKind::other && word != event_word(JobEventKind::other))
    event.words = event.words.empty() ? word : word + ": " + event.words;
  return event;
}

std::string job_event_text(const JobEvent& event) {
  std::string text = fmt::format("{}  {:<16}  ", date_text(event.time_ms), event.node);
  text += event.attempt > 0 ? fmt::format("attempt {:<3}", event.attempt) : "           ";
  text += fmt::format("  {:<16}", event_word(event.kind));
  if (event.rank) text += fmt::format("  rank {}", *event.rank);
  if (!event.words.empty()) text += "  " + event.words;
  return std::string(text.substr(0, text.find_last_not_of(' ') + 1));
}

}  // namespace lockstep::status
