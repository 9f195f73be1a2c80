// The restricted pickle reader on any bytes: what it accepts can be written, and read again as the
// same; and what is a rendezvous state stays one. Limits are small, so that they are met.
#include "base/error.h"
#include "codec/base64.h"
#include "codec/pickle.h"
#include "rendezvous/dynamic/state_codec.h"

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <string_view>
#include <vector>

namespace {
using namespace lockstep;  // NOLINT

constexpr codec::PickleLimits kSmall{.max_bytes = 1U << 16, .max_items = 2000, .max_depth = 12};

const std::vector<codec::PickleGlobal>& allowed() {
  static const std::string module = "torch.distributed.elastic.rendezvous.dynamic_rendezvous";
  static const std::vector<codec::PickleGlobal> globals = {{module, "_RendezvousState"},
                                                           {module, "_NodeDesc"},
                                                           {"datetime", "datetime"},
                                                           {"datetime", "timezone"},
                                                           {"datetime", "timedelta"}};
  return globals;
}

void check_pickle(std::string_view bytes) {
  const auto value = codec::read_pickle(bytes, allowed(), kSmall);
  if (!value) {
    LOCKSTEP_CHECK(value.error().code == Errc::corrupt);
    return;
  }
  // Longer than what was read it may be (a dict of memos), but only the number of bytes may stop
  // it.
  const codec::PickleLimits roomy{
      .max_bytes = 1U << 24, .max_items = kSmall.max_items, .max_depth = kSmall.max_depth};
  const auto written = codec::write_pickle(*value, roomy);
  LOCKSTEP_CHECK(written.has_value());
  const auto again = codec::read_pickle(*written, allowed(), roomy);
  LOCKSTEP_CHECK(again.has_value());
  LOCKSTEP_CHECK(codec::write_pickle(*again, roomy).value() == *written);
}

// With lists and floats, as in dumps of PyTorch's flight recorder: read only.
void check_lists(std::string_view bytes) {
  codec::PickleLimits limits = kSmall;
  limits.lists = true;
  const auto value = codec::read_pickle(bytes, allowed(), limits);
  LOCKSTEP_CHECK(value.has_value() || value.error().code == Errc::corrupt);
  if (value) (void)codec::write_pickle(*value);
}

void check_state(std::string_view bytes) {
  const std::string text = codec::base64_encode(bytes);
  LOCKSTEP_CHECK(codec::base64_decode(text).value() == bytes);
  const auto state = rendezvous::dynamic::decode_state(text);
  if (!state) return;
  const auto written = rendezvous::dynamic::encode_state(*state);
  LOCKSTEP_CHECK(written.has_value());
  const auto again = rendezvous::dynamic::decode_state(*written);
  LOCKSTEP_CHECK(again.has_value());
  LOCKSTEP_CHECK(again->participants == state->participants);
  LOCKSTEP_CHECK(again->last_heartbeats == state->last_heartbeats);
  LOCKSTEP_CHECK(rendezvous::dynamic::encode_state(*again).value() == *written);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_pickle(bytes);
  check_lists(bytes);
  check_state(bytes);
  (void)codec::base64_decode(bytes);
  return 0;
}
