// NCCL's RAS: a report of any bytes, and a talk with any peer, whole or byte by byte.
#include "base/error.h"
#include "base/text.h"
#include "codec/json.h"
#include "recorder/ras.h"

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <string_view>

using namespace lockstep;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Commas change nothing in what is JSON already. (The JSON library stops at a zero byte.)
  if (bytes.find('\0') == std::string_view::npos && !codec::parse_json(bytes).is_discarded())
    LOCKSTEP_CHECK(recorder::with_commas(bytes) == bytes);
  if (const auto report = recorder::read_ras_report(bytes)) {
    for (const std::string& sentence : recorder::ras_sentences(*report))
      LOCKSTEP_CHECK(sentence.size() <= 610 && printable(sentence, 700) == sentence);
  }
  recorder::RasTalk whole(5);
  recorder::RasTalk pieces(5);
  const bool fine = whole.feed(bytes).has_value();
  bool all = true;
  for (size_t i = 0; i < size && all; ++i)
    all = pieces.feed(bytes.substr(i, 1)).has_value();
  LOCKSTEP_CHECK(fine == all);
  if (fine) {
    LOCKSTEP_CHECK(whole.out == pieces.out && whole.json() == pieces.json());
    LOCKSTEP_CHECK(whole.finish().value_or("") == pieces.finish().value_or(""));
  }
  return 0;
}
