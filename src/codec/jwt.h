// JSON Web Tokens signed with RS256 (RSASSA-PKCS1-v1_5 with SHA-256).
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::codec {

// pem: an RSA key, as key files of service accounts have it, not encrypted. key_id may be empty.
// claims: a JSON object. Errors never have a part of the key in them.
Result<std::string> sign_jwt(const std::string& pem, const std::string& key_id,
                             std::string_view claims);

}  // namespace lockstep::codec
