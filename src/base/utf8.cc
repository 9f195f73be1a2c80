// Validates UTF-8 without decoding.
#include "base/utf8.h"

#include <cstdio>

namespace lockstep {

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  std::size_t size = 0;
  if (lead >= 0xc2 && lead <= 0xdf) size = 2;
  if (lead >= 0xe0 && lead <= 0xef) size = 3;
  if (lead >= 0xf0 && lead <= 0xf4) size = 4;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // The lead bytes C0, C1 and F5 to FF were refused above.
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) > 0x9f;
  const bool beyond = lead == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : size;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t size = utf8_length(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

std::size_t shown_length(std::string_view text) {
  const std::size_t size = utf8_length(text);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  // U+202A to U+202E and U+2066 to U+2069 change the direction of the surrounding text.
  if (size == 3 && byte(0) == 0xe2 &&
      ((byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) ||
       (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9)))
    return 0;
  if (size == 0 || size > 2) return size;
  if (size == 1) return byte(0) < 0x20 || byte(0) == 0x7f ? 0 : 1;
  // C2 80 to C2 9F are the C1 control characters.
  return byte(0) == 0xc2 && byte(1) < 0xa0 ? 0 : 2;
}

void append_escaped(char byte, std::string& to) {
  char hex[5];
  std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(byte));
  to += hex;
}

}  // namespace lockstep
