// What a tree consists of: its files and links, as far as stat() knows them. Pure.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

enum class Kind : std::uint8_t { file, link };

struct Entry {
  std::string path;  // relative to the root, parts between single slashes
  Kind kind = Kind::file;
  bool executable = false;  // of a file, as what follows
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::string target = {};  // of a link

  bool operator==(const Entry&) const = default;
};

// Sorted by the paths' bytes; no path twice.
using Manifest = std::vector<Entry>;

void sort(Manifest& manifest);
const Entry* find(const Manifest& manifest, std::string_view path);

// Whether `there` is what was meant to arrive. File systems may keep less of a time than ours does.
bool same(const Entry& there, const Entry& meant);

// Whether git could take a folder or file of this name for a repository: ".git" in any case, as
// file systems that ignore case have it, and its short name on NTFS, "git~1".
bool is_of_git(std::string_view part);

// Refuses what could lead out of the root ("", "/x", "a//b", "a/../b") and whatever is_of_git().
Status check_path(std::string_view path);

// Whether the text of a link from a host that is not trusted keeps it in the tree, whatever other
// links are there, or will be: ".." only in front, where the link's own real folder bounds them,
// and nothing that is_of_git(). Confined::leads_out() says where the user's own links lead it.
bool link_may_come(const Entry& link);

inline constexpr std::size_t kMostEntries = 4U << 20;
inline constexpr std::size_t kMostPath = 4095;
// Of all paths and targets of one manifest that is read. An entry of 5 bytes can repeat 4,095 bytes
// of the path before it.
inline constexpr std::size_t kMostPathBytes = 512U << 20;

// Bytes for the wire and for files: paths without what they share with the one before.
void encode(const Manifest& manifest, std::string& out);
// Takes one manifest from the front of the bytes. corrupt: no manifest, or a path that check_path
// refuses.
Result<Manifest> decode(std::string_view& bytes);

// The building blocks, for what stands around manifests.
void encode_number(std::uint64_t number, std::string& out);
void encode_text(std::string_view text, std::string& out);
std::optional<std::uint64_t> decode_number(std::string_view& bytes);
std::optional<std::string_view> decode_text(std::string_view& bytes, std::size_t most);

// The largest number there is where the sizes exceed it.
std::uint64_t bytes_of(const Manifest& manifest);

}  // namespace lockstep::sync
