// SHA-256 and its HMAC, by OpenSSL's libcrypto, as bytes.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::codec {

std::string sha256(std::string_view bytes);
std::string hmac_sha256(std::string_view key, std::string_view bytes);
std::string hex(std::string_view bytes);  // in small letters

}  // namespace lockstep::codec
