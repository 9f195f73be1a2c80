#include "sync/manifest.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep::sync {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::size_t kFewestBytesOfAnEntry = 5;

// The bits of an entry's first byte after the path.
constexpr std::uint8_t kIsLink = 1;
constexpr std::uint8_t kIsExecutable = 2;

Failure corrupt() {
  return fail(Errc::corrupt, "the list of files is unreadable");
}

// Zigzag puts the sign into the lowest bit, so that times before 1970 stay short as well.
std::uint64_t zigzag(std::int64_t number) {
  return static_cast<std::uint64_t>(number) << 1 ^ static_cast<std::uint64_t>(number >> 63);
}

std::int64_t unzigzag(std::uint64_t number) {
  return static_cast<std::int64_t>(number >> 1) ^ -static_cast<std::int64_t>(number & 1);
}

std::size_t shared_bytes(std::string_view a, std::string_view b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end.first - a.begin());
}

bool by_path(const Entry& a, const Entry& b) {
  return a.path < b.path;
}

// Reads the fields after the path.
bool decode_rest(std::string_view& bytes, Entry& entry) {
  if (bytes.empty()) return false;
  const auto bits = static_cast<std::uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  // Unknown bits come from a newer version. Guessing would write a wrong file.
  if (bits > (kIsLink | kIsExecutable)) return false;
  entry.kind = (bits & kIsLink) != 0 ? Kind::link : Kind::file;
  entry.executable = (bits & kIsExecutable) != 0;
  if (entry.kind == Kind::link) {
    const auto target = decode_text(bytes, kMostPath);
    if (!target || target->empty() || target->find('\0') != std::string_view::npos) return false;
    entry.target = *target;
    return !entry.executable;
  }
  const auto size = decode_number(bytes);
  const auto mtime = decode_number(bytes);
  // Sizes of files are signed on all systems.
  if (!size || !mtime || *size > std::numeric_limits<std::int64_t>::max()) return false;
  entry.size = *size;
  entry.mtime_ns = unzigzag(*mtime);
  return true;
}

}  // namespace

void sort(Manifest& manifest) {
  // Scans come sorted already.
  if (!std::is_sorted(manifest.begin(), manifest.end(), by_path))
    std::sort(manifest.begin(), manifest.end(), by_path);
  const auto twice = [](const Entry& a, const Entry& b) { return a.path == b.path; };
  manifest.erase(std::unique(manifest.begin(), manifest.end(), twice), manifest.end());
}

const Entry* find(const Manifest& manifest, std::string_view path) {
  const auto at =
      std::lower_bound(manifest.begin(), manifest.end(), path,
                       [](const Entry& entry, std::string_view key) { return entry.path < key; });
  return at != manifest.end() && at->path == path ? &*at : nullptr;
}

bool same(const Entry& there, const Entry& meant) {
  if (there.kind != meant.kind) return false;
  if (there.kind == Kind::link) return there.target == meant.target;
  if (there.size != meant.size || there.executable != meant.executable) return false;
  // FAT and old NFS store whole seconds, others microseconds or steps of 100 ns.
  for (const std::int64_t step :
       {std::int64_t{1}, std::int64_t{100}, std::int64_t{1000}, kNsPerSecond})
    if (there.mtime_ns == meant.mtime_ns - ((meant.mtime_ns % step) + step) % step) return true;
  return false;
}

bool is_of_git(std::string_view part) {
  // File systems that ignore case, and the short names of Windows, give git's folder other names.
  if (part.size() == 4) return to_lower(part) == ".git";
  return part.size() == 5 && to_lower(part) == "git~1";
}

bool link_may_come(const Entry& link) {
  if (link.target.starts_with('/')) return false;
  auto above = std::count(link.path.begin(), link.path.end(), '/');
  bool in_front = true;
  for (const std::string& part : split(link.target, '/')) {
    if (part.empty() || part == ".") continue;
    // A ".." after a name is refused: the name may be a link, and ".." then leads elsewhere.
    if (part == ".." ? !in_front || --above < 0 : is_of_git(part)) return false;
    in_front = in_front && part == "..";
  }
  return true;
}

Status check_path(std::string_view path) {
  const auto refuse = [path](const char* why) {
    return fail(Errc::corrupt, fmt::format("'{}' {}", printable(path), why));
  };
  if (path.empty() || path.size() > kMostPath) return refuse("is not a path in a tree");
  if (path.find('\0') != std::string_view::npos) return refuse("is not a path");
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t end = std::min(path.find('/', from), path.size());
    const std::string_view part = path.substr(from, end - from);
    if (part.empty() || part == "." || part == "..") return refuse("could lead out of the tree");
    if (is_of_git(part)) return refuse("belongs to git itself");
    from = end + 1;
  }
  return {};
}

void encode_number(std::uint64_t number, std::string& out) {
  for (; number >= 0x80; number >>= 7)
    out.push_back(static_cast<char>((number & 0x7F) | 0x80));
  out.push_back(static_cast<char>(number));
}

std::optional<std::uint64_t> decode_number(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    // The tenth byte has room for one bit only.
    if (shift == 63 && byte > 1) return std::nullopt;
    number |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

void encode_text(std::string_view text, std::string& out) {
  encode_number(text.size(), out);
  out += text;
}

std::optional<std::string_view> decode_text(std::string_view& bytes, std::size_t most) {
  const auto size = decode_number(bytes);
  if (!size || *size > most || *size > bytes.size()) return std::nullopt;
  const std::string_view text = bytes.substr(0, *size);
  bytes.remove_prefix(*size);
  return text;
}

void encode(const Manifest& manifest, std::string& out) {
  encode_number(manifest.size(), out);
  std::string_view before;
  for (const Entry& entry : manifest) {
    const std::size_t shared = shared_bytes(before, entry.path);
    encode_number(shared, out);
    encode_text(std::string_view(entry.path).substr(shared), out);
    out.push_back(static_cast<char>((entry.kind == Kind::link ? kIsLink : 0) |
                                    (entry.executable ? kIsExecutable : 0)));
    if (entry.kind == Kind::link) {
      encode_text(entry.target, out);
    } else {
      encode_number(entry.size, out);
      encode_number(zigzag(entry.mtime_ns), out);
    }
    before = entry.path;
  }
}

Result<Manifest> decode(std::string_view& bytes) {
  const auto count = decode_number(bytes);
  // Bound the count by the received bytes: a small message must not reserve much memory.
  if (!count || *count > kMostEntries || *count > bytes.size() / kFewestBytesOfAnEntry + 1)
    return corrupt();
  Manifest manifest;
  manifest.reserve(*count);
  std::size_t path_bytes = 0;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const std::string_view before = manifest.empty() ? "" : std::string_view(manifest.back().path);
    const auto shared = decode_number(bytes);
    const auto rest = decode_text(bytes, kMostPath);
    if (!shared || *shared > before.size() || !rest) return corrupt();
    Entry entry;
    entry.path.assign(before.substr(0, *shared)).append(*rest);
    LOCKSTEP_TRY(check_path(entry.path));
    if (!decode_rest(bytes, entry)) return corrupt();
    path_bytes += entry.path.size() + entry.target.size();
    if (path_bytes > kMostPathBytes) return corrupt();
    // Ascending paths rule out duplicates, and the lookups rely on the order.
    if (!manifest.empty() && entry.path <= manifest.back().path) return corrupt();
    manifest.push_back(std::move(entry));
  }
  return manifest;
}

std::uint64_t bytes_of(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const Entry& entry : manifest)
    if (__builtin_add_overflow(bytes, entry.size, &bytes))
      return std::numeric_limits<std::uint64_t>::max();
  return bytes;
}

}  // namespace lockstep::sync
