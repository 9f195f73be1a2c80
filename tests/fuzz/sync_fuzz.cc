// What the ends of a sync say to each other, what a host keeps, and ignore files, on any bytes:
// what is accepted comes back the same, no path in it leads out of a tree or into a .git, and no
// size in it makes more work than its pieces.
#include "base/error.h"
#include "base/text.h"
#include "peer/length.h"
#include "peer/meeting.h"
#include "peer/peer_wire.h"
#include "sync/ignore.h"
#include "sync/offer.h"
#include "sync/pieces.h"
#include "sync/record.h"

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <string_view>

namespace {
using namespace lockstep::sync;  // NOLINT
namespace peer = lockstep::peer;

void check(const Manifest& manifest) {
  for (size_t i = 0; i < manifest.size(); ++i) {
    LOCKSTEP_CHECK(check_path(manifest[i].path).has_value());
    LOCKSTEP_CHECK(i == 0 || manifest[i - 1].path < manifest[i].path);
    LOCKSTEP_CHECK(lockstep::to_lower(manifest[i].path).find("/.git/") == std::string::npos);
    if (manifest[i].kind == Kind::link && link_may_come(manifest[i]))
      LOCKSTEP_CHECK(manifest[i].target.front() != '/' &&
                     lockstep::to_lower(manifest[i].target).find("/.git/") == std::string::npos);
  }
  Cutter cutter(manifest, kMostPieceBytes);
  for (int groups = 0; groups < 4; ++groups) {
    const auto group = cutter.next();
    LOCKSTEP_CHECK(group.size() <= kMostPieces);
    uint64_t bytes = 0;
    for (const Range& range : group) {
      bytes += range.length;
      LOCKSTEP_CHECK(range.offset + range.length <= manifest[range.entry].size);
    }
    LOCKSTEP_CHECK(bytes <= kMostPieceBytes);
  }
}

void check_peer(std::string_view bytes) {
  if (const auto meeting = peer::decode_meeting(bytes)) {
    const auto again =
        peer::decode_meeting(peer::encode_meeting(*meeting).substr(peer::kLengthBytes));
    LOCKSTEP_CHECK(again && again->key == meeting->key && again->owner == meeting->owner &&
                   again->addresses == meeting->addresses && again->port == meeting->port);
  }
  if (const auto answer = peer::parse_answer(bytes))
    (void)peer::parse_answer(peer::print_answer(*answer)).value();
  if (const auto group = peer::decode_wish(bytes)) {
    check(*group);
    const auto again = peer::decode_wish(peer::encode_wish(*group).substr(peer::kLengthBytes));
    LOCKSTEP_CHECK(again && *again == *group);
  }
  // Whatever pieces are announced, no file gets more than it holds, and each ends once.
  const Manifest group = {{.path = "a", .size = 1}, {.path = "b", .size = 300'000}};
  peer::Intake intake(group);
  uint64_t most = 0;
  for (; bytes.size() >= peer::kPieceHead; bytes.remove_prefix(peer::kPieceHead)) {
    const peer::PieceHead head = peer::decode_head(bytes.substr(0, peer::kPieceHead));
    const auto next = intake.take(head);
    if (!next) break;
    if (next->means != peer::Intake::Means::piece) continue;
    LOCKSTEP_CHECK(next->offset + head.length <= next->entry->size);
    most += head.length;
  }
  LOCKSTEP_CHECK(most <= bytes_of(group));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto offer = decode_offer(bytes)) {
    check(offer->manifest);
    const auto again = decode_offer(encode_offer(*offer));
    LOCKSTEP_CHECK(again && again->manifest == offer->manifest && again->owner == offer->owner &&
                   again->destination == offer->destination);
  }
  if (const auto record = decode_record(bytes)) {
    check(record->sent);
    check(record->coming);
    const auto again = decode_record(encode_record(*record));
    LOCKSTEP_CHECK(again && again->sent == record->sent && again->coming == record->coming);
  }
  if (const auto answer = parse_answer(bytes, 100)) {
    size_t next = 0;
    for (const Span& span : answer->needed) {
      LOCKSTEP_CHECK(span.first >= next && span.last >= span.first && span.last < 100);
      next = span.last + 1;
    }
  }
  if (const auto delivery = decode_delivery(bytes)) {
    for (const Piece& piece : delivery->pieces) {
      LOCKSTEP_CHECK(check_path(piece.entry.path).has_value());
      LOCKSTEP_CHECK(piece.offset + piece.bytes.size() <= piece.entry.size);
    }
    const auto again = decode_delivery(encode_delivery(*delivery));
    LOCKSTEP_CHECK(again && again->pieces == delivery->pieces);
  }
  DeliveryReader reader;
  reader.put(bytes);
  for (auto delivery = reader.next(); delivery && *delivery; delivery = reader.next())
    LOCKSTEP_CHECK(delivery->value().pieces.size() <= kMostPieces);
  if (const auto wish = decode_wish(bytes))
    LOCKSTEP_CHECK(wish->pieces.size() == wish->lengths.size());
  if (const auto listing = decode_listing(bytes)) check(*listing);
  (void)decode_contents(bytes);
  check_peer(bytes);
  const size_t end = bytes.find('\0');
  if (end != std::string_view::npos) {
    const IgnoreRules rules(bytes.substr(end + 1), "");
    (void)rules.about(bytes.substr(0, end), true);
  }
  return 0;
}
