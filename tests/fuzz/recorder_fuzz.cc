// Dumps of flight recorders, in both forms, of two ranks: the input is cut at its middle zero byte,
// or given to both. Any bytes end in a dump within the limits or in an error, and what is said of
// the dumps is printable and bounded. The bytes are also read as the summary of another node.
#include "base/error.h"
#include "base/text.h"
#include "recorder/collective_facts.h"
#include "recorder/dump.h"
#include "recorder/pulse.h"
#include "recorder/summary.h"

#include <stddef.h>
#include <stdint.h>

#include <map>
#include <string>
#include <string_view>

namespace {
using namespace lockstep;  // NOLINT
constexpr recorder::DumpLimits kSmall{.bytes = 1U << 15, .values = 3000, .entries = 64};

void check_summary(std::string_view bytes) {
  const auto read = recorder::read_summary(bytes, 100, 1);
  if (!read) LOCKSTEP_CHECK(read.error().code == Errc::corrupt);
  if (read) LOCKSTEP_CHECK(read->dumps.empty() || read->dumps.rbegin()->first < 100);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::map<int, recorder::Dump> dumps;
  int rank = 0;
  for (const std::string_view part : {bytes, bytes.substr(size / 2), bytes.substr(0, size / 2)}) {
    auto dump = recorder::read_dump(part, kSmall);
    if (!dump) {
      LOCKSTEP_CHECK(dump.error().code == Errc::corrupt);
      continue;
    }
    LOCKSTEP_CHECK(dump->entries.size() <= kSmall.entries);
    LOCKSTEP_CHECK(recorder::pulse_of(*dump).mark == recorder::pulse_of(*dump).mark);
    dumps.emplace(rank++, *dump);
    // A rank that has seen all but the last collective.
    if (!dump->entries.empty()) dump->entries.pop_back();
    dumps.emplace(rank++, std::move(*dump));
  }
  check_summary(bytes);
  const std::string told = recorder::summary_json({.dumps = dumps}, 1);
  LOCKSTEP_CHECK(told.size() <= recorder::kMostSummary);
  if (!told.empty())
    LOCKSTEP_CHECK(recorder::read_summary(told, 100, 1).value().dumps.size() == dumps.size());
  for (const auto& stuck : recorder::merge_dumps(dumps)) {
    const std::string sentence = recorder::stuck_sentence(stuck);
    LOCKSTEP_CHECK(sentence.size() <= 610 && printable(sentence, 700) == sentence);
    LOCKSTEP_CHECK(!stuck.entered.empty());
    const std::string words = recorder::collective_words(stuck, stuck.entered.front());
    LOCKSTEP_CHECK(words.size() <= 130 && printable(words, 200) == words);
  }
  return 0;
}
