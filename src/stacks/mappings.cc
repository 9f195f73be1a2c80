#include "stacks/mappings.h"

#include "base/text.h"
#include "stacks/maps.h"

#include <algorithm>
#include <iterator>

namespace lockstep::stacks {
namespace {

constexpr std::size_t kMostMappings = 100'000;
constexpr std::size_t kMostName = 64;

// Code must be readable, too: a return address counts only if a call stands before it.
bool has_code(const MapLine& line) {
  const bool executable =
      line.permissions.starts_with("r-x") || line.permissions.starts_with("rwx");
  return executable && (line.path.starts_with('/') || line.path == "[vdso]");
}

}  // namespace

std::vector<Mapping> parse_mappings(std::string_view maps, const io::Devices& local) {
  std::vector<Mapping> mappings;
  std::string_view path;  // of the last line that begins with the first byte of a file
  Address image = 0;
  while (!maps.empty() && mappings.size() < kMostMappings) {
    const std::size_t end = std::min(maps.find('\n'), maps.size());
    const auto line = parse_map_line(maps.substr(0, end));
    maps.remove_prefix(std::min(end + 1, maps.size()));
    if (!line || line->end <= line->start) continue;
    // mapping_at() relies on the order.
    if (!mappings.empty() && line->start < mappings.back().end) continue;
    Mapping mapping{.start = line->start, .end = line->end};
    // Anonymous memory has the device 00:00.
    mapping.far = line->device != "00:00" && !local.contains(line->device);
    if (!line->path.empty()) {
      // A library has several lines. Its headers, from which symbols count, lie at offset 0.
      if (line->offset == 0) {
        path = line->path;
        image = line->start;
      }
      if (line->path == path) mapping.image = image;
      mapping.code = has_code(*line);
      mapping.name = printable(line->path.substr(line->path.rfind('/') + 1), kMostName);
      mapping.file = std::string(line->device) + " " + std::string(line->inode);
    }
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

const Mapping* mapping_at(const std::vector<Mapping>& mappings, Address at) {
  const auto after = std::upper_bound(
      mappings.begin(), mappings.end(), at,
      [](Address address, const Mapping& mapping) { return address < mapping.start; });
  if (after == mappings.begin()) return nullptr;
  const Mapping& mapping = *std::prev(after);
  return at < mapping.end ? &mapping : nullptr;
}

}  // namespace lockstep::stacks
