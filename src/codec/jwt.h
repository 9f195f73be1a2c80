// JSON Web Tokens signed with RS256 (RSASSA-PKCS1-v1_5 with SHA-256).
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::codec {

// Returns a signed token. pem: an unencrypted RSA key, as in the key file of a service account.
// key_id may be empty. claims: a JSON object. Errors never contain a part of the key. Fails with
// invalid_input for a key that cannot sign.
Result<std::string> sign_jwt(const std::string& pem, const std::string& key_id,
                             std::string_view claims);

}  // namespace lockstep::codec
