// The messages between two hosts inside their encrypted channel, as bytes. Pure. The taking host
// asks for a group of files. The serving host sends them in pieces, in whatever order it has them.
// Every length is bounded.
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

// Returns true if an entry's bytes must come from the other host. A link or an empty file is
// complete in the manifest.
bool has_content(const sync::Entry& entry);

// Returns the entries with content, in groups of one wish each.
std::vector<sync::Manifest> groups_of(const sync::Manifest& needed);

// Returns the bytes with their length in front (length.h).
std::string encode_wish(const sync::Manifest& group);
// Fails if an entry has no content, too.
Result<sync::Manifest> decode_wish(std::string_view bytes);  // behind the length

struct PieceHead {
  static constexpr std::uint32_t kAlive = 0xFFFFFFFF;
  std::uint32_t index = kAlive;  // in the group; kAlive: no file is ready yet, keep waiting
  std::uint32_t length = 0;      // bytes that follow; 0: the file is not available
};
inline constexpr std::size_t kPieceHead = 8;
std::string encode_head(const PieceHead& head);
PieceHead decode_head(std::string_view bytes);  // takes kPieceHead bytes

// Tracks what has come of one group. Trusts nothing: accepts only files of the group, each once, in
// order, and never more bytes than a file has.
class Intake {
 public:
  explicit Intake(const sync::Manifest& group) : group_(group), ended_(group.size()) {}

  enum class Means { wait, piece, gone };
  struct Next {
    Means means = Means::wait;
    const sync::Entry* entry = nullptr;
    std::uint64_t offset = 0;  // of the piece; for Means::gone: how much had come
    bool whole = false;        // this piece completes the file
  };
  Result<Next> take(const PieceHead& head);
  bool done() const { return count_ == group_.size(); }

 private:
  const sync::Manifest& group_;
  std::vector<bool> ended_;
  std::size_t count_ = 0;  // number of true values in ended_
  std::optional<std::size_t> begun_;
  std::uint64_t offset_ = 0;
};

}  // namespace lockstep::peer
