// Encodes and decodes base64, strictly.
#include "codec/base64.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::codec {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int, 256> make_digits() {
  std::array<int, 256> digits{};
  digits.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int>(i);
  }
  return digits;
}
constexpr auto kDigits = make_digits();

unsigned byte_at(std::string_view bytes, std::size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0U;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const unsigned group =
        byte_at(bytes, at) << 16 | byte_at(bytes, at + 1) << 8 | byte_at(bytes, at + 2);
    for (unsigned digit = 0; digit < 4; ++digit) {
      // A group of one byte has two digits, a group of two bytes has three.
      text += at + digit > bytes.size() ? '=' : kAlphabet[group >> (18 - 6 * digit) & 63U];
    }
  }
  return text;
}

std::string base64url_encode(std::string_view bytes) {
  std::string text = base64_encode(bytes);
  while (text.ends_with('='))
    text.pop_back();
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

Result<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0)
    return fail(Errc::corrupt,
                fmt::format("base64 of {} characters, not a multiple of 4", text.size()));
  std::size_t digits = text.size();
  // At most two padding characters count. Any more are reported as wrong characters.
  while (digits > 0 && text.size() - digits < 2 && text[digits - 1] == '=')
    --digits;
  std::string bytes(digits * 6 / 8, '\0');
  std::size_t end = 0;
  unsigned bits = 0;
  unsigned held = 0;  // number of `bits` not written to `bytes` yet
  for (std::size_t at = 0; at < digits; ++at) {
    const int digit = kDigits[static_cast<unsigned char>(text[at])];
    if (digit < 0)
      return fail(Errc::corrupt, fmt::format("not a base64 character at offset {}", at));
    bits = bits << 6 | static_cast<unsigned>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes[end++] = static_cast<char>(bits >> held & 255U);
    // Keep only unwritten bits, so that `bits` cannot overflow.
    bits &= (1U << held) - 1;
  }
  // Bits beyond the last byte: no encoder writes these.
  if (bits != 0)
    return fail(Errc::corrupt, fmt::format("base64 with bits left over at offset {}", digits - 1));
  return bytes;
}

}  // namespace lockstep::codec
