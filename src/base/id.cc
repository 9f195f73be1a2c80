// Draws random names from the kernel.
#include "base/id.h"

#include "base/error.h"

#include <sys/random.h>

#include <array>
#include <cstdio>

namespace lockstep {
namespace {
void fill_random(unsigned char* bytes, std::size_t size) {
  LOCKSTEP_CHECK(size <= 256);  // getrandom() always fills up to 256 bytes
  LOCKSTEP_CHECK(getrandom(bytes, size, 0) == static_cast<ssize_t>(size));
}
}  // namespace

std::string random_uuid4() {
  std::array<unsigned char, 16> b{};
  fill_random(b.data(), b.size());
  b[6] = static_cast<unsigned char>((b[6] & 0x0f) | 0x40);  // version 4
  b[8] = static_cast<unsigned char>((b[8] & 0x3f) | 0x80);  // RFC 4122's variant
  std::string out;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", b[i]);
    out += hex;
  }
  return out;
}

std::string random_suffix(std::size_t size) {
  // The alphabet of Python's mkdtemp(), which torchrun uses for its folders.
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::string out;
  while (out.size() < size) {
    std::array<unsigned char, 64> bytes{};
    fill_random(bytes.data(), bytes.size());
    for (const unsigned char byte : bytes)  // 222 = 6 * 37: larger bytes would favour some letters
      if (byte < 222 && out.size() < size) out += kAlphabet[byte % kAlphabet.size()];
  }
  return out;
}

std::string random_key(std::size_t size) {
  std::string out(size, '\0');
  fill_random(reinterpret_cast<unsigned char*>(out.data()), out.size());
  return out;
}

}  // namespace lockstep
