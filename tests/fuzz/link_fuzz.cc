// The link's frames and an ssh master's messages on any bytes in any pieces: the same outcome whole
// and split, and what is accepted can be written and read again as the same. A client that has
// started one command takes no more than its room, from nobody else, and nothing after its end.
#include "base/error.h"
#include "link/frames.h"
#include "link/host_rules.h"
#include "ssh/mux_codec.h"

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace {
using namespace lockstep::link;  // NOLINT

struct Outcome {
  std::vector<std::string> frames;
  bool broken = false;
  bool operator==(const Outcome&) const = default;
};

Outcome read(std::string_view bytes, size_t step, FrameReader::Wants wants) {
  Outcome outcome;
  FrameReader reader(wants);
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
      put_frame(outcome.frames.emplace_back(), frame);
      const auto* hello = std::get_if<Hello>(&frame);
      if (hello != nullptr && hello->version != kVersion) continue;
      const auto again = parse_frame(std::string_view(outcome.frames.back()).substr(4));
      LOCKSTEP_CHECK(again.has_value());
      std::string twice;
      put_frame(twice, *again);
      LOCKSTEP_CHECK(twice == outcome.frames.back());
    }
  }
  return outcome;
}

void judge(std::string_view bytes) {
  constexpr uint32_t kChannel = 1;
  HostRules rules;
  rules.sent(Start{.channel = kChannel, .result = true});
  FrameReader reader(FrameReader::Wants::frames);
  Frame frame;
  size_t most = 3 * kWindow;  // of three streams
  bool over = false;
  while (reader.next(bytes, frame) == FrameReader::Step::frame) {
    const auto verdict = rules.judge(frame);
    if (verdict == HostRules::Verdict::refuse) {
      LOCKSTEP_CHECK(!rules.why().empty());
      return;
    }
    if (verdict == HostRules::Verdict::drop || std::holds_alternative<Hello>(frame)) continue;
    LOCKSTEP_CHECK(!over);
    over = std::holds_alternative<Exit>(frame) || std::holds_alternative<Refused>(frame);
    if (const auto* data = std::get_if<Data>(&frame)) {
      LOCKSTEP_CHECK(data->channel == kChannel && !data->bytes.empty());
      LOCKSTEP_CHECK(data->bytes.size() <= most);
      most -= data->bytes.size();
    }
  }
}

void read_master(std::string_view bytes) {
  bool broken = false;
  while (lockstep::ssh::mux::take_message(bytes, broken)) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t step = std::max<size_t>(data[0], 1);
  const std::string stream = std::string(kGreeting) + std::string(bytes);
  const auto greeting = FrameReader::Wants::greeting;
  LOCKSTEP_CHECK(read(stream, stream.size(), greeting) == read(stream, step, greeting));
  read(bytes, std::max<size_t>(bytes.size(), 1), FrameReader::Wants::frames);
  judge(bytes);
  read_master(bytes);
  return 0;
}
