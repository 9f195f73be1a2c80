// What two hosts say to each other inside of their encrypted channel, as bytes; pure. The one that
// takes asks for a group of files, the one that serves sends them in pieces, in the order in which
// it has them. Every length is bounded.
#pragma once

#include "base/error.h"
#include "sync/manifest.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::peer {

inline constexpr std::size_t kMostGroupEntries = 16UL << 10;
inline constexpr std::size_t kMostWishBytes = 16UL << 20;
inline constexpr std::size_t kMostPieceBytes = 256UL << 10;

// What an entry needs of the other end: links and empty files are known already.
bool has_content(const sync::Entry& entry);

// Those with content, in groups that are each one wish.
std::vector<sync::Manifest> groups_of(const sync::Manifest& needed);

// With its length in front (length.h).
std::string encode_wish(const sync::Manifest& group);
// Fails also where an entry has no content.
Result<sync::Manifest> decode_wish(std::string_view bytes);  // behind the length

struct PieceHead {
  static constexpr std::uint32_t kAlive = 0xFFFFFFFF;
  std::uint32_t index = kAlive;  // in the group; kAlive: nothing is there yet, wait
  std::uint32_t length = 0;      // of the bytes behind it; 0: the file can't be had
};
inline constexpr std::size_t kPieceHead = 8;
std::string encode_head(const PieceHead& head);
PieceHead decode_head(std::string_view bytes);  // kPieceHead of them

// What has come of one group. Believes nothing: only files of the group, each once, in order, and
// no more of it than it holds.
class Intake {
 public:
  explicit Intake(const sync::Manifest& group) : group_(group), ended_(group.size()) {}

  enum class Means { wait, piece, gone };
  struct Next {
    Means means = Means::wait;
    const sync::Entry* entry = nullptr;
    std::uint64_t offset = 0;  // of the piece; of one that is gone: what had come of it
    bool whole = false;        // with this piece
  };
  Result<Next> take(const PieceHead& head);
  bool done() const { return count_ == group_.size(); }

 private:
  const sync::Manifest& group_;
  std::vector<bool> ended_;
  std::size_t count_ = 0;  // of ended_
  std::optional<std::size_t> begun_;
  std::uint64_t offset_ = 0;
};

}  // namespace lockstep::peer
