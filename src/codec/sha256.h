// SHA-256 and its HMAC as bytes, by OpenSSL's libcrypto.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::codec {

std::string sha256(std::string_view bytes);
std::string hmac_sha256(std::string_view key, std::string_view bytes);
std::string hex(std::string_view bytes);  // in lower case

}  // namespace lockstep::codec
