// Files by our own way, where there is no rsync, where little is to be sent, and back from a host:
// pieces of bounded size, so that neither end holds much at once. Bytes for the wire; pure.
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

// Of the contents that one request or answer carries.
inline constexpr std::uint64_t kMostPieceBytes = 32UL << 20;
inline constexpr std::size_t kMostPieces = 4096;

// Which bytes of an entry.
struct Range {
  std::size_t entry;  // its place in a manifest
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // 0 for a link and an empty file
  bool operator==(const Range&) const = default;
};

// Cuts the entries, in order, into groups of at most so many bytes. kMostPieceBytes: each is one
// request; kDeliveryBytes: each is one of a stream of deliveries. Makes one group at a time, as an
// entry may claim any size. The manifest must outlive it.
inline constexpr std::uint64_t kDeliveryBytes = 1UL << 20;
class Cutter {
 public:
  Cutter(const Manifest& manifest, std::uint64_t most_bytes)
      : manifest_(&manifest), most_bytes_(most_bytes) {}
  // Empty: that was all.
  std::vector<Range> next();

 private:
  const Manifest* manifest_;
  std::uint64_t most_bytes_;
  std::size_t entry_ = 0;
  std::uint64_t done_ = 0;  // of that entry
};

struct Piece {
  Entry entry;  // as a whole
  std::uint64_t offset = 0;
  std::string bytes = {};
  bool operator==(const Piece&) const = default;
};

// Client to host: here they are.
struct Delivery {
  std::string destination = {};
  Owner owner = {};
  std::vector<Piece> pieces = {};
};
std::string encode_delivery(const Delivery& delivery);
Result<Delivery> decode_delivery(std::string_view bytes);

// Deliveries that follow one another in a stream.
std::string frame_delivery(const Delivery& delivery);
class DeliveryReader {
 public:
  void put(std::string_view bytes) { unread_.append(bytes); }
  // nullopt: it has not come whole.
  Result<std::optional<Delivery>> next();
  bool at_border() const { return read_ == unread_.size(); }

 private:
  std::string unread_;
  std::size_t read_ = 0;  // of unread_
};

// Client to host: what is there? And: send me these.
struct Wish {
  std::string destination = {};
  std::string path = {};  // what is listed, "" for all; not looked at where pieces are wanted
  std::vector<Piece> pieces = {};           // without their bytes
  std::vector<std::uint64_t> lengths = {};  // of the pieces
};
std::string encode_wish(const Wish& wish);
Result<Wish> decode_wish(std::string_view bytes);

// The host's answers. An error is an answer, too.
std::string encode_listing(const Result<Manifest>& listing);
Result<Manifest> decode_listing(std::string_view bytes);
// One text for each piece that was wished for; shorter than wished: the file is another one now.
std::string encode_contents(const Result<std::vector<std::string>>& contents);
Result<std::vector<std::string>> decode_contents(std::string_view bytes);

}  // namespace lockstep::sync
