// Decodes CPython's line tables. A number in a table has at most 36 bits, and a sum has 64. So no
// table of an acceptable size makes a line overflow.
#include "stacks/line_table.h"

#include <cstddef>
#include <limits>

namespace lockstep::stacks {
namespace {

using Table = std::span<const std::uint8_t>;

int as_line(std::int64_t line) {
  return line > 0 && line <= std::numeric_limits<int>::max() ? static_cast<int>(line) : 0;
}

// Each pair: bytes of code, then lines by which the line after these bytes differs.
int lnotab_line(Table table, std::int64_t line, std::int64_t offset) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    at += table[i];
    if (at > offset) break;
    line += static_cast<std::int8_t>(table[i + 1]);
  }
  return as_line(line);
}

// Each pair: bytes of code, then lines by which the line of these bytes differs; -128: no line.
int line_deltas_line(Table table, std::int64_t line, std::int64_t offset) {
  constexpr std::int8_t kNoLine = -128;
  std::int64_t end = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    end += table[i];
    const auto delta = static_cast<std::int8_t>(table[i + 1]);
    if (delta != kNoLine) line += delta;
    if (offset < end) return delta == kNoLine ? 0 : as_line(line);
  }
  return 0;
}

// Six bits a byte, the lowest first; bit 6 says that another byte follows. The sign is bit 0.
std::int64_t signed_varint(Table table, std::size_t at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; at < table.size() && shift < 36; shift += 6) {
    const std::uint8_t byte = table[at++];
    value |= static_cast<std::uint64_t>(byte & 0x3f) << shift;
    if ((byte & 0x40) == 0) break;
  }
  const auto size = static_cast<std::int64_t>(value >> 1);
  return (value & 1) != 0 ? -size : size;
}

// The first byte of an entry: bit 7 is set, bits 3 to 6 are the kind, bits 0 to 2 the length of its
// code in units of two bytes, less one.
int locations_line(Table table, std::int64_t line, std::int64_t offset) {
  constexpr unsigned kOneLine1 = 11;
  constexpr unsigned kOneLine2 = 12;
  constexpr unsigned kNoColumns = 13;
  constexpr unsigned kLong = 14;
  constexpr unsigned kNoLocation = 15;
  std::int64_t end = 0;
  std::size_t i = 0;
  while (i < table.size()) {
    const unsigned kind = (table[i] >> 3U) & 15U;
    if (kind == kNoColumns || kind == kLong) line += signed_varint(table, i + 1);
    if (kind == kOneLine1) line += 1;
    if (kind == kOneLine2) line += 2;
    end += std::int64_t{2} * ((table[i] & 7) + 1);
    if (offset < end) return kind == kNoLocation ? 0 : as_line(line);
    // Only the first byte of an entry has bit 7, so the columns are skipped without decoding them.
    do {
      ++i;
    } while (i < table.size() && (table[i] & 0x80) == 0);
  }
  return 0;
}

}  // namespace

int line_at(LineTable kind, Table table, int first_line, std::int64_t offset) {
  // A frame before its first instruction stands at the line of its "def".
  if (offset < 0) return as_line(first_line);
  switch (kind) {
    case LineTable::lnotab:
      return lnotab_line(table, first_line, offset);
    case LineTable::line_deltas:
      return line_deltas_line(table, first_line, offset);
    case LineTable::locations:
      return locations_line(table, first_line, offset);
  }
  return 0;
}

}  // namespace lockstep::stacks
