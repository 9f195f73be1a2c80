#include "top/text_width.h"

#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lockstep::top {
namespace {

struct CodeRange {
  std::uint32_t first;
  std::uint32_t last;
};

// Marks that are drawn over the character before them.
constexpr std::array<CodeRange, 10> kNoColumn = {{{0x300, 0x36F},
                                                  {0x483, 0x489},
                                                  {0x591, 0x5BD},
                                                  {0x64B, 0x65F},
                                                  {0x1AB0, 0x1AFF},
                                                  {0x1DC0, 0x1DFF},
                                                  {0x200B, 0x200F},
                                                  {0x20D0, 0x20FF},
                                                  {0xFE00, 0xFE0F},
                                                  {0xE0100, 0xE01EF}}};
// Characters of East Asia, and emoji.
constexpr std::array<CodeRange, 12> kTwoColumns = {{{0x1100, 0x115F},
                                                    {0x2E80, 0x303E},
                                                    {0x3041, 0xA4CF},
                                                    {0xAC00, 0xD7A3},
                                                    {0xF900, 0xFAFF},
                                                    {0xFE30, 0xFE6F},
                                                    {0xFF00, 0xFF60},
                                                    {0xFFE0, 0xFFE6},
                                                    {0x1F300, 0x1F64F},
                                                    {0x1F680, 0x1F6FF},
                                                    {0x1F900, 0x1FAFF},
                                                    {0x20000, 0x3FFFD}}};

template <std::size_t count>
bool is_in(std::uint32_t code, const std::array<CodeRange, count>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [code](const CodeRange& range) {
    return code >= range.first && code <= range.last;
  });
}

// Decodes one well-formed character.
std::uint32_t code_of(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  std::uint32_t code = byte(0) & (0xFFU >> (character.size() + 1));
  for (std::size_t i = 1; i < character.size(); ++i)
    code = code << 6 | (byte(i) & 0x3FU);
  return code;
}

std::size_t width_of(std::string_view character) {
  const std::uint32_t code = code_of(character);
  if (code < 0x300) return 1;
  if (is_in(code, kNoColumn)) return 0;
  return is_in(code, kTwoColumns) ? 2 : 1;
}

}  // namespace

std::string_view cut_to(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  std::size_t used = 0;
  while (at < text.size()) {
    const std::size_t size = std::max<std::size_t>(utf8_length(text.substr(at)), 1);
    used += width_of(text.substr(at, size));
    if (used > columns) break;
    at += size;
  }
  return text.substr(0, at);
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const std::size_t size = std::max<std::size_t>(utf8_length(text), 1);
    columns += width_of(text.substr(0, size));
    text.remove_prefix(size);
  }
  return columns;
}

std::string fitted(std::string_view text, std::size_t columns, Side side) {
  const std::string_view shown = cut_to(text, columns);
  const std::string fill(columns - columns_of(shown), ' ');
  return side == Side::left ? std::string(shown) + fill : fill + std::string(shown);
}

}  // namespace lockstep::top
