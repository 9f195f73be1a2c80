// The manifest of a tree: its files and links with their stat() facts. Pure.
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
  bool executable = false;  // files only, like size and mtime_ns
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::string target = {};  // links only

  bool operator==(const Entry&) const = default;
};

// Sorted by the bytes of the paths, without duplicates.
using Manifest = std::vector<Entry>;

// Sorts by path and drops duplicates.
void sort(Manifest& manifest);
// Returns the entry of a path, or nullptr. The manifest must be sorted.
const Entry* find(const Manifest& manifest, std::string_view path);

// Returns true if `there` is `meant` after a transfer: some file systems store times with fewer
// digits.
bool same(const Entry& there, const Entry& meant);

// Returns true for names that git may take for a repository: ".git" in any case, because some file
// systems ignore case, and "git~1", its short name on NTFS.
bool is_of_git(std::string_view part);

// Refuses paths that could lead out of the root ("", "/x", "a//b", "a/../b") or are git's own
// (is_of_git()).
Status check_path(std::string_view path);

// Returns true if a link from an untrusted host stays in the tree, whatever other links exist or
// will exist. ".." is allowed only at the front, where the link's own real folder bounds it. Links
// to git's own files are refused. Confined::leads_out() checks where the user's own links lead.
bool link_may_come(const Entry& link);

inline constexpr std::size_t kMostEntries = 4U << 20;
inline constexpr std::size_t kMostPath = 4095;
// The limit for all paths and targets of one manifest, in bytes: an entry of 5 bytes can repeat
// 4,095 bytes of the path before.
inline constexpr std::size_t kMostPathBytes = 512U << 20;

// Appends the manifest's bytes, for the wire and for files. Each path omits the prefix that it
// shares with the path before.
void encode(const Manifest& manifest, std::string& out);
// Takes one manifest from the front of the bytes. corrupt: not a manifest, or a path that
// check_path() refuses.
Result<Manifest> decode(std::string_view& bytes);

// Building blocks for formats that contain manifests. Numbers are LEB128 (7 bits a byte, low bits
// first); texts have their length first. nullopt: cut or too large.
void encode_number(std::uint64_t number, std::string& out);
void encode_text(std::string_view text, std::string& out);
std::optional<std::uint64_t> decode_number(std::string_view& bytes);
std::optional<std::string_view> decode_text(std::string_view& bytes, std::size_t most);

// Returns the sum of all sizes, or the largest number if the sum overflows.
std::uint64_t bytes_of(const Manifest& manifest);

}  // namespace lockstep::sync
