// Kineto: a datagram of any bytes, a request about profiles, and a trace that a rank wrote, whole
// or in pieces.
#include "base/error.h"
#include "codec/json.h"
#include "codec/kineto.h"
#include "status/profile_answer.h"
#include "status/profile_merge.h"

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <string_view>

using namespace lockstep;  // NOLINT

namespace {

struct MergedText {
  bool whole = false;
  std::string text;
};

MergedText merged_in_pieces(std::string_view bytes, size_t piece) {
  MergedText merged{.text = std::string(status::merged_head())};
  status::MergedTrace trace(3, 1, true);
  bool fine = true;
  for (size_t at = 0; at < bytes.size() && fine; at += piece)
    fine = trace.feed(bytes.substr(at, piece), merged.text);
  merged.whole = fine && trace.is_whole();
  merged.text += status::merged_tail(trace.base());
  return merged;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (codec::read_kineto_message(bytes)) LOCKSTEP_CHECK(size >= 56);
  if (codec::is_kineto_client(bytes)) LOCKSTEP_CHECK(bytes.find('/') == std::string_view::npos);
  if (const auto query = status::read_profile_query(bytes))
    LOCKSTEP_CHECK(query->wish.every > 0 && query->wish.steps <= status::kMostProfileSteps);
  (void)status::read_profile_answer(bytes);
  const MergedText merged = merged_in_pieces(bytes, size + 1);
  const MergedText pieces = merged_in_pieces(bytes, 1);
  LOCKSTEP_CHECK(merged.whole == pieces.whole);
  if (!merged.whole) return 0;
  LOCKSTEP_CHECK(merged.text == pieces.text);
  // What is JSON stays JSON. (The JSON library stops at a zero byte.)
  const codec::JsonLimits limits{.depth = 100};
  if (bytes.find('\0') == std::string_view::npos &&
      !codec::parse_json(bytes, limits).is_discarded())
    LOCKSTEP_CHECK(codec::parse_json(merged.text, limits).is_object());
  return 0;
}
