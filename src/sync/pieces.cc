#include "sync/pieces.h"

#include "base/text.h"
#include "codec/wire.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep::sync {
namespace {

constexpr std::string_view kDelivery = "lockstep-delivery\n";
constexpr std::string_view kWish = "lockstep-wish\n";
constexpr std::string_view kFine = "lockstep-tree\n";
constexpr std::string_view kError = "lockstep-error\n";
// An error, too: what was asked for is not there.
constexpr std::string_view kAbsent = "lockstep-absent\n";
constexpr std::size_t kMostWords = 4096;
constexpr std::size_t kFrameHead = sizeof(std::uint32_t);
// The content of a delivery, and 4,096 paths of full length.
constexpr std::uint64_t kMostFrame = kMostPieceBytes + kMostPieces * 4 * kMostPath;

Failure corrupt() {
  return fail(Errc::corrupt, "the other end sent unreadable data");
}

bool take(std::string_view& bytes, std::string_view word) {
  if (!bytes.starts_with(word)) return false;
  bytes.remove_prefix(word.size());
  return true;
}

bool take_text(std::string_view& bytes, std::string& text, std::size_t most) {
  const auto read = decode_text(bytes, most);
  if (read) text = *read;
  return read.has_value();
}

// Reads an entry as a manifest of one entry, for the sake of the checks.
Result<Entry> take_entry(std::string_view& bytes) {
  LOCKSTEP_TRY_ASSIGN(Manifest one, decode(bytes));
  if (one.size() != 1) return corrupt();
  return std::move(one.front());
}

Status take_heads(std::string_view& bytes, std::vector<Piece>& pieces) {
  const auto count = decode_number(bytes);
  if (!count || *count > kMostPieces) return corrupt();
  for (std::uint64_t i = 0; i < *count; ++i) {
    LOCKSTEP_TRY_ASSIGN(Entry entry, take_entry(bytes));
    const auto offset = decode_number(bytes);
    if (!offset || *offset > entry.size) return corrupt();
    pieces.push_back({std::move(entry), *offset});
  }
  return {};
}

void put_heads(const std::vector<Piece>& pieces, std::string& out) {
  encode_number(pieces.size(), out);
  for (const Piece& piece : pieces) {
    encode({piece.entry}, out);
    encode_number(piece.offset, out);
  }
}

std::string encode_error(const Error& error) {
  std::string out(error.code == Errc::not_found ? kAbsent : kError);
  encode_text(error.message.substr(0, kMostWords), out);
  encode_text(error.hint.substr(0, kMostWords), out);
  return out;
}

// Returns the other end's error if the bytes are one, else skips the heading.
Status check_error(std::string_view& bytes) {
  if (take(bytes, kFine)) return {};
  std::string message;
  std::string hint;
  const bool absent = take(bytes, kAbsent);
  if ((!absent && !take(bytes, kError)) || !take_text(bytes, message, kMostWords) ||
      !take_text(bytes, hint, kMostWords))
    return corrupt();
  return fail(absent ? Errc::not_found : Errc::unavailable, printable(message, 1000),
              printable(hint, 1000));
}

}  // namespace

std::vector<Range> Cutter::next() {
  std::vector<Range> group;
  std::uint64_t room = most_bytes_;
  while (entry_ < manifest_->size() && group.size() < kMostPieces) {
    const std::uint64_t left = (*manifest_)[entry_].size - done_;
    if (left != 0 && room == 0) break;
    const std::uint64_t length = std::min(left, room);
    group.push_back({entry_, done_, length});
    room -= length;
    done_ += length;
    // The next group begins with the rest of this entry.
    if (length != left) break;
    ++entry_;
    done_ = 0;
  }
  return group;
}

std::string encode_delivery(const Delivery& delivery) {
  std::string out(kDelivery);
  encode_text(delivery.destination, out);
  encode_owner(delivery.owner, out);
  put_heads(delivery.pieces, out);
  for (const Piece& piece : delivery.pieces)
    encode_text(piece.bytes, out);
  return out;
}

Result<Delivery> decode_delivery(std::string_view bytes) {
  Delivery delivery;
  if (!take(bytes, kDelivery) || !take_text(bytes, delivery.destination, kMostPath))
    return corrupt();
  auto owner = decode_owner(bytes);
  if (!owner) return corrupt();
  delivery.owner = std::move(*owner);
  LOCKSTEP_TRY(take_heads(bytes, delivery.pieces));
  for (Piece& piece : delivery.pieces)
    if (!take_text(bytes, piece.bytes, kMostPieceBytes) ||
        piece.bytes.size() > piece.entry.size - piece.offset)
      return corrupt();
  if (!bytes.empty()) return corrupt();
  return delivery;
}

std::string frame_delivery(const Delivery& delivery) {
  const std::string bytes = encode_delivery(delivery);
  std::string out;
  codec::wire::Writer(out).number(static_cast<std::uint32_t>(bytes.size()));
  return out + bytes;
}

Result<std::optional<Delivery>> DeliveryReader::next() {
  const std::string_view left = std::string_view(unread_).substr(read_);
  if (left.size() < kFrameHead) return std::nullopt;
  std::uint32_t size = 0;
  codec::wire::Reader(left).number(size);
  // Refuse before the bytes are awaited, which would fill the memory.
  if (size > kMostFrame) return corrupt();
  if (left.size() < kFrameHead + size) {
    // Moves the rest to the front only when it is incomplete, so each byte moves once.
    unread_.erase(0, std::exchange(read_, 0));
    return std::nullopt;
  }
  LOCKSTEP_TRY_ASSIGN(Delivery delivery, decode_delivery(left.substr(kFrameHead, size)));
  read_ += kFrameHead + size;
  return delivery;
}

std::string encode_wish(const Wish& wish) {
  std::string out(kWish);
  encode_text(wish.destination, out);
  encode_text(wish.path, out);
  put_heads(wish.pieces, out);
  for (const std::uint64_t length : wish.lengths)
    encode_number(length, out);
  return out;
}

Result<Wish> decode_wish(std::string_view bytes) {
  Wish wish;
  if (!take(bytes, kWish) || !take_text(bytes, wish.destination, kMostPath) ||
      !take_text(bytes, wish.path, kMostPath))
    return corrupt();
  if (!wish.path.empty()) LOCKSTEP_TRY(check_path(wish.path));
  LOCKSTEP_TRY(take_heads(bytes, wish.pieces));
  std::uint64_t room = kMostPieceBytes;
  for (std::size_t i = 0; i < wish.pieces.size(); ++i) {
    const auto length = decode_number(bytes);
    // All pieces of one answer together stay below the limit.
    if (!length || *length > room) return corrupt();
    room -= *length;
    wish.lengths.push_back(*length);
  }
  if (!bytes.empty()) return corrupt();
  return wish;
}

std::string encode_listing(const Result<Manifest>& listing) {
  if (!listing) return encode_error(listing.error());
  std::string out(kFine);
  encode(*listing, out);
  return out;
}

Result<Manifest> decode_listing(std::string_view bytes) {
  LOCKSTEP_TRY(check_error(bytes));
  LOCKSTEP_TRY_ASSIGN(Manifest manifest, decode(bytes));
  if (!bytes.empty()) return corrupt();
  return manifest;
}

std::string encode_contents(const Result<std::vector<std::string>>& contents) {
  if (!contents) return encode_error(contents.error());
  std::string out(kFine);
  encode_number(contents->size(), out);
  for (const std::string& each : *contents)
    encode_text(each, out);
  return out;
}

Result<std::vector<std::string>> decode_contents(std::string_view bytes) {
  LOCKSTEP_TRY(check_error(bytes));
  const auto count = decode_number(bytes);
  if (!count || *count > kMostPieces) return corrupt();
  std::vector<std::string> contents(*count);
  for (std::string& each : contents)
    if (!take_text(bytes, each, kMostPieceBytes)) return corrupt();
  if (!bytes.empty()) return corrupt();
  return contents;
}

}  // namespace lockstep::sync
