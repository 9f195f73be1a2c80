// Parses the lines of /proc/PID/maps.
#include "stacks/maps.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

namespace lockstep::stacks {
namespace {

constexpr std::size_t kMostFiles = 8;
constexpr std::string_view kDeleted = " (deleted)";
constexpr std::string_view kLibrary = "libpython3.";
constexpr std::string_view kProgram = "python";

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Takes the text up to the next space.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::optional<std::uint64_t> hex(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  if (error != std::errc() || stop != end) return {};
  return value;
}

// Returns the mapping if it begins with the first byte of a file.
std::optional<MappedFile> mapped_file(std::string_view text) {
  const auto line = parse_map_line(text);
  if (!line || line->offset != 0 || !line->path.starts_with('/')) return {};
  MappedFile file{line->start, line->end, std::string(line->path), line->path.ends_with(kDeleted)};
  if (file.deleted) file.path.resize(file.path.size() - kDeleted.size());
  return file;
}

// The lower, the sooner it is asked. 3: certainly not CPython. A program comes before a library: it
// is the interpreter if it holds one, even if a package has loaded the library too.
int rank_of(const MappedFile& file, std::string_view exe) {
  const std::string_view name = file_name(file.path);
  if (name.starts_with(kProgram)) return 0;
  // libpython3.so, the library of the stable ABI, only leads to the other one.
  if (name.starts_with(kLibrary) && version_in_name(name)) return 1;
  return file.path == exe ? 2 : 3;
}

}  // namespace

// "55d0c0a00000-55d0c0a1e000 r--p 00000000 fe:00 1234    /usr/bin/python3.11"
std::optional<MapLine> parse_map_line(std::string_view line) {
  const std::string_view range = take_word(line);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return {};
  const auto start = hex(range.substr(0, dash));
  const auto end = hex(range.substr(dash + 1));
  MapLine parsed{.permissions = take_word(line)};
  const auto offset = hex(take_word(line));
  if (!start || !end || !offset) return {};
  parsed.start = *start;
  parsed.end = *end;
  parsed.offset = *offset;
  parsed.device = take_word(line);
  parsed.inode = take_word(line);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  parsed.path = line;
  return parsed;
}

std::vector<MappedFile> python_files(std::string_view maps, std::string_view exe) {
  // After an upgrade the kernel adds " (deleted)" to the link and to the path in the list.
  if (exe.ends_with(kDeleted)) exe.remove_suffix(kDeleted.size());
  std::vector<std::pair<int, MappedFile>> found;
  while (!maps.empty() && found.size() < kMostFiles) {
    const std::size_t end = std::min(maps.find('\n'), maps.size());
    if (auto file = mapped_file(maps.substr(0, end)))
      if (const int rank = rank_of(*file, exe); rank < 3)
        found.emplace_back(rank, *std::move(file));
    maps.remove_prefix(std::min(end + 1, maps.size()));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<MappedFile> files;
  files.reserve(found.size());
  for (auto& [rank, file] : found)
    files.push_back(std::move(file));
  return files;
}

std::optional<Version> version_in_name(std::string_view path) {
  std::string_view name = file_name(path);
  const std::size_t at = name.find(kProgram);
  if (at == std::string_view::npos) return {};
  name.remove_prefix(at + kProgram.size());
  Version version;
  const char* const end = name.data() + name.size();
  const auto major = std::from_chars(name.data(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return {};
  if (std::from_chars(major.ptr + 1, end, version.minor).ec != std::errc()) return {};
  return version;
}

}  // namespace lockstep::stacks
