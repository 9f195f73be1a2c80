// Files sent in pieces of bounded size, so that neither end holds much in memory. Used without
// rsync, for small amounts, and for files that come back from a host. Pure bytes.
#pragma once

#include "base/error.h"
#include "sync/manifest.h"
#include "sync/record.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

// The most content bytes in one request or answer.
inline constexpr std::uint64_t kMostPieceBytes = 32UL << 20;
inline constexpr std::size_t kMostPieces = 4096;

// A range of bytes of one entry.
struct Range {
  std::size_t entry;  // index in a manifest
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // 0 for a link and an empty file
  bool operator==(const Range&) const = default;
};

// Cuts the entries, in order, into groups of at most `most_bytes` each: kMostPieceBytes for
// requests, kDeliveryBytes for a stream of deliveries. Makes one group at a time, because an entry
// may claim any size. The manifest must outlive the Cutter.
inline constexpr std::uint64_t kDeliveryBytes = 1UL << 20;
class Cutter {
 public:
  Cutter(const Manifest& manifest, std::uint64_t most_bytes)
      : manifest_(&manifest), most_bytes_(most_bytes) {}
  // Returns the next group; empty at the end.
  std::vector<Range> next();

 private:
  const Manifest* manifest_;
  std::uint64_t most_bytes_;
  std::size_t entry_ = 0;
  std::uint64_t done_ = 0;  // bytes of the current entry already cut
};

struct Piece {
  Entry entry;  // describes the whole file
  std::uint64_t offset = 0;
  std::string bytes = {};
  bool operator==(const Piece&) const = default;
};

// Client to host: contents.
struct Delivery {
  std::string destination = {};
  Owner owner = {};
  std::vector<Piece> pieces = {};
};
std::string encode_delivery(const Delivery& delivery);
Result<Delivery> decode_delivery(std::string_view bytes);

// A delivery with its length in front, for a stream of deliveries.
std::string frame_delivery(const Delivery& delivery);
class DeliveryReader {
 public:
  void put(std::string_view bytes) { unread_.append(bytes); }
  // Returns the next delivery; nullopt: more bytes are needed.
  Result<std::optional<Delivery>> next();
  // True between two deliveries: the stream may end here.
  bool at_border() const { return read_ == unread_.size(); }

 private:
  std::string unread_;
  std::size_t read_ = 0;  // consumed bytes of unread_
};

// Client to host: asks for a listing, or for pieces.
struct Wish {
  std::string destination = {};
  std::string path = {};           // the path to list, "" for all; ignored if pieces are wanted
  std::vector<Piece> pieces = {};  // without content
  std::vector<std::uint64_t> lengths = {};  // one per piece, in bytes
};
std::string encode_wish(const Wish& wish);
Result<Wish> decode_wish(std::string_view bytes);

// The host's answers. An error is an answer, too: not_found stays not_found, and others become
// unavailable.
std::string encode_listing(const Result<Manifest>& listing);
Result<Manifest> decode_listing(std::string_view bytes);
// One text per wanted piece. A shorter text means that the file has changed.
std::string encode_contents(const Result<std::vector<std::string>>& contents);
Result<std::vector<std::string>> decode_contents(std::string_view bytes);

}  // namespace lockstep::sync
