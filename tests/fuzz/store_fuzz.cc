// Wire and engine end to end on one client's bytes. Byte 0 chooses the greeting, byte 1 the size of
// the pieces the rest arrives in. Whole or in pieces, the same must come out; every request read
// must be written back as the same bytes; nothing may be left behind.
#include "base/error.h"
#include "store/engine.h"
#include "store/store_testing.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace {
using namespace lockstep;         // NOLINT
using namespace lockstep::store;  // NOLINT
using store::testing::bytes_of;
using store::testing::Peer;

constexpr Limits kSmall{.max_key_bytes = 64,
                        .max_value_bytes = 4096,
                        .max_keys = 32,
                        .max_message_bytes = 8192,
                        .max_parked = 4};

struct Outcome {
  std::string out;
  std::string verdict;
  std::string bystander;
  std::size_t requests = 0;
  std::size_t bytes = 0;
  std::size_t parked = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome run(std::string_view bytes, std::size_t piece) {
  constexpr std::string_view kKeys[] = {"k", "q"};
  Engine engine(kSmall);
  Outcome outcome;
  Peer waiter(engine);
  waiter.feed(greeting(Dialect::d, 1) + bytes_of(Dialect::d, {.op = Op::wait, .items = kKeys}) +
              bytes_of(Dialect::d, {.op = Op::barrier, .key = "b", .number = 2}));
  Peer watcher(engine);
  watcher.feed(bytes_of(Dialect::a, {.op = Op::watch_key, .key = "k"}));
  {
    Peer peer(engine);
    peer.feed_pieces(bytes, piece);
    outcome.verdict = peer.verdict();
    outcome.requests = peer.requests;
    outcome.parked = engine.parked();
    outcome.out = peer.take();
  }
  outcome.bystander = waiter.take() + "|" + watcher.take();
  outcome.bytes = engine.bytes();
  LOCKSTEP_CHECK(engine.parked() == waiter.session().parked());
  engine.purge();
  LOCKSTEP_CHECK(engine.parked() == 0 && engine.bytes() == 0 && engine.num_keys() == 0);
  return outcome;
}

void check_round_trip(std::string_view bytes) {
  RequestReader reader(kSmall);
  Request request;
  while (true) {
    const std::string_view before = bytes;
    request = {};
    if (reader.next(bytes, request) != RequestReader::Step::request) return;
    const std::string again = bytes_of(reader.dialect(), request);
    LOCKSTEP_CHECK(before.substr(0, before.size() - bytes.size()) == again);
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::string bytes;
  if (data[0] % 3 == 1) bytes = greeting(Dialect::d, 1);
  if (data[0] % 3 == 2) bytes = bytes_of(Dialect::a, {.op = Op::num_keys});
  bytes.append(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (bytes.empty()) return 0;
  check_round_trip(bytes);
  LOCKSTEP_CHECK(run(bytes, bytes.size()) == run(bytes, 1U + data[1] % 16));
  return 0;
}
