// Hashes with OpenSSL's libcrypto.
#include "codec/sha256.h"

#include "base/error.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

namespace lockstep::codec {
namespace {

using Sha256 = std::array<unsigned char, 32>;

std::string sha256_bytes(const Sha256& sum) {
  return {sum.begin(), sum.end()};
}

}  // namespace

// Do not read OpenSSL's configuration file: it can load code.
std::string sha256(std::string_view bytes) {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  Sha256 sum{};
  unsigned size = 0;
  LOCKSTEP_CHECK(EVP_Digest(bytes.data(), bytes.size(), sum.data(), &size, EVP_sha256(), nullptr) ==
                 1);
  return sha256_bytes(sum);
}

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  Sha256 sum{};
  unsigned size = 0;
  const auto* const made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), sum.data(), &size);
  LOCKSTEP_CHECK(made != nullptr && size == sum.size());
  return sha256_bytes(sum);
}

std::string hex(std::string_view bytes) {
  // Signatures compare these digits as text.
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

}  // namespace lockstep::codec
