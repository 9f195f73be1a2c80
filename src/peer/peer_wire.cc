#include "peer/peer_wire.h"

#include "base/text.h"
#include "codec/wire.h"
#include "peer/length.h"

#include <utility>

namespace lockstep::peer {
namespace {

// An upper bound for the numbers of an entry.
constexpr std::size_t kEntryBytes = 40;

Failure corrupt() {
  return fail(Errc::corrupt, "the other host sent unreadable data");
}

}  // namespace

bool has_content(const sync::Entry& entry) {
  return entry.kind == sync::Kind::file && entry.size != 0;
}

std::vector<sync::Manifest> groups_of(const sync::Manifest& needed) {
  std::vector<sync::Manifest> groups;
  std::size_t bytes = 0;
  for (const sync::Entry& entry : needed) {
    if (!has_content(entry)) continue;
    const std::size_t more = entry.path.size() + kEntryBytes;
    // A group must stay below the limits of decode_wish().
    if (groups.empty() || groups.back().size() == kMostGroupEntries ||
        bytes + more > kMostWishBytes) {
      groups.emplace_back();
      bytes = 0;
    }
    groups.back().push_back(entry);
    bytes += more;
  }
  return groups;
}

std::string encode_wish(const sync::Manifest& group) {
  std::string body;
  sync::encode(group, body);
  return with_length(body);
}

Result<sync::Manifest> decode_wish(std::string_view bytes) {
  LOCKSTEP_TRY_ASSIGN(sync::Manifest group, sync::decode(bytes));
  if (!bytes.empty() || group.size() > kMostGroupEntries) return corrupt();
  for (const sync::Entry& entry : group)
    if (!has_content(entry)) return corrupt();
  return group;
}

std::string encode_head(const PieceHead& head) {
  std::string out;
  codec::wire::Writer writer(out);
  writer.number(head.index);
  writer.number(head.length);
  return out;
}

PieceHead decode_head(std::string_view bytes) {
  PieceHead head;
  codec::wire::Reader reader(bytes);
  reader.number(head.index);
  reader.number(head.length);
  LOCKSTEP_CHECK(reader.good());
  return head;
}

Result<Intake::Next> Intake::take(const PieceHead& head) {
  if (head.index == PieceHead::kAlive) {
    if (head.length != 0) return corrupt();
    return Next{};
  }
  // A piece of another file in the middle would mix contents.
  if (head.index >= group_.size() || ended_[head.index] || head.length > kMostPieceBytes ||
      (begun_ && *begun_ != head.index))
    return corrupt();
  const sync::Entry& entry = group_[head.index];
  Next next{.means = Means::piece, .entry = &entry, .offset = offset_};
  // The file has changed or vanished on the serving host.
  if (head.length == 0) {
    next.means = Means::gone;
  } else if (head.length > entry.size - offset_) {
    return corrupt();
  } else {
    offset_ += head.length;
    next.whole = offset_ == entry.size;
  }
  // Remember which file the next piece must belong to.
  begun_ = head.index;
  if (next.whole || next.means == Means::gone) {
    ended_[head.index] = true;
    ++count_;
    begun_.reset();
    offset_ = 0;
  }
  return next;
}

}  // namespace lockstep::peer
