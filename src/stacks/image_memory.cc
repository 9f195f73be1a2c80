// Keeps ranges of bytes by address.
#include "stacks/image_memory.h"

#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace lockstep::stacks {
namespace {

constexpr std::size_t kLargestImage = 4U << 20;
constexpr std::size_t kLargestRecorded = 4'000;  // less than a page, which ReadAhead reads

template <class T>
bool take(std::string_view& from, T& to) {
  if (from.size() < sizeof(T)) return false;
  std::memcpy(&to, from.data(), sizeof(T));
  from.remove_prefix(sizeof(T));
  return true;
}

template <class T>
void append(std::string& to, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  to.append(bytes, sizeof(T));
}

}  // namespace

std::size_t ImageMemory::read_pieces(std::span<const Piece> pieces) {
  std::size_t done = 0;
  while (done < pieces.size() && read_piece(pieces[done]))
    ++done;
  return done;
}

bool ImageMemory::read_piece(const Piece& piece) const {
  auto range = ranges_.upper_bound(piece.at);
  if (range == ranges_.begin()) return false;
  --range;
  const std::size_t skip = piece.at - range->first;
  const std::vector<std::byte>& bytes = range->second;
  if (skip > bytes.size() || bytes.size() - skip < piece.into.size()) return false;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(skip), piece.into.size(),
              piece.into.begin());
  return true;
}

void ImageMemory::put(Address at, std::span<const std::byte> bytes) {
  if (bytes.empty() || at + bytes.size() < at) return;
  std::vector<std::byte> merged(bytes.begin(), bytes.end());
  auto range = ranges_.upper_bound(at);
  if (range != ranges_.begin()) {
    const auto before = std::prev(range);
    if (before->first + before->second.size() >= at) range = before;
  }
  // Merge with each range that overlaps or touches the new one.
  while (range != ranges_.end() && range->first <= at + merged.size()) {
    const std::vector<std::byte>& old = range->second;
    if (range->first < at) {
      const std::size_t head = at - range->first;
      merged.insert(merged.begin(), old.begin(), old.begin() + static_cast<std::ptrdiff_t>(head));
      at = range->first;
    }
    const std::size_t covered = at + merged.size() - range->first;
    if (covered < old.size())
      merged.insert(merged.end(), old.begin() + static_cast<std::ptrdiff_t>(covered), old.end());
    range = ranges_.erase(range);
  }
  ranges_.emplace(at, std::move(merged));
}

std::string ImageMemory::save() const {
  std::string made;
  for (const auto& [at, bytes] : ranges_) {
    append(made, at);
    append(made, static_cast<std::uint32_t>(bytes.size()));
    made.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return made;
}

ImageMemory ImageMemory::load(std::string_view saved) {
  ImageMemory made;
  saved = saved.substr(0, kLargestImage);
  Address at = 0;
  std::uint32_t size = 0;
  while (take(saved, at) && take(saved, size) && size <= saved.size()) {
    made.put(at, std::as_bytes(std::span(saved.data(), size)));
    saved.remove_prefix(size);
  }
  return made;
}

std::size_t RecordingMemory::read_pieces(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces)
    if (piece.into.size() > kLargestRecorded) return 0;
  const std::size_t got = memory_.read_pieces(pieces);
  for (const Piece& piece : pieces.first(got))
    image_.put(piece.at, piece.into);
  return got;
}

std::string save_recording(const Recording& recording) {
  return std::to_string(recording.start) + " " + std::to_string(recording.pid) + " " +
         recording.name + "\n" + recording.memory.save();
}

std::optional<Recording> load_recording(std::string_view saved) {
  const std::size_t end = saved.find('\n');
  if (end == std::string_view::npos) return {};
  const auto words = split(saved.substr(0, end), ' ');
  if (words.size() != 3) return {};
  const auto start = parse_int(words[0]);
  const auto pid = parse_int(words[1]);
  if (!start || !pid) return {};
  return Recording{static_cast<Address>(*start), static_cast<int>(*pid), words[2],
                   ImageMemory::load(saved.substr(end + 1))};
}

}  // namespace lockstep::stacks
