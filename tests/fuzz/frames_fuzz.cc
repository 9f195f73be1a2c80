// The hub's frames on any bytes in any pieces: the same outcome whole and split, and what is
// accepted can be written and read again as the same.
#include "base/error.h"
#include "rendezvous/hub/hub_frames.h"

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace {
using namespace lockstep::rendezvous::hub;  // NOLINT

struct Outcome {
  std::vector<std::string> frames;
  bool broken = false;
  bool operator==(const Outcome&) const = default;
};

Outcome read(std::string_view bytes, size_t step) {
  Outcome outcome;
  FrameReader reader;
  reader.set_limit(FrameReader::kFromHub);
  for (size_t at = 0; at < bytes.size() && !outcome.broken; at += step) {
    const std::string piece(bytes.substr(at, step));  // memory of its own
    std::string_view chunk = piece;
    for (;;) {
      Frame frame;
      const auto next = reader.next(chunk, frame);
      if (next == FrameReader::Step::more) break;
      if (next == FrameReader::Step::error) {
        LOCKSTEP_CHECK(!reader.error().empty());
        outcome.broken = true;
        break;
      }
      outcome.frames.push_back(frame_bytes(frame));
      const auto again = parse_frame(std::string_view(outcome.frames.back()).substr(4));
      const auto* hello = std::get_if<Hello>(&frame);
      if (hello != nullptr && hello->version != kVersion) continue;
      LOCKSTEP_CHECK(again.has_value());
      LOCKSTEP_CHECK(*again == frame);
    }
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  // With the preamble before it, so that the fuzzer need not find that.
  std::string stream(kPreamble);
  stream += bytes;
  LOCKSTEP_CHECK(read(stream, stream.size()) == read(stream, std::max<size_t>(data[0], 1)));
  read(bytes, std::max<size_t>(bytes.size(), 1));
  return 0;
}
