// HMAC by OpenSSL's libcrypto. OpenSSL's configuration file must not be read, because it can load
// code.
#include "rendezvous/hub/hub_auth.h"

#include "base/error.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <string>

namespace lockstep::rendezvous::hub {

Nonce random_nonce() {
  Nonce nonce{};
  LOCKSTEP_CHECK(getrandom(nonce.data(), nonce.size(), 0) == static_cast<ssize_t>(nonce.size()));
  return nonce;
}

Mac prove(std::string_view token, Side side, const Nonce& agent, const Nonce& hub,
          std::string_view run_id) {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  // The label keeps a proof from being valid in any other protocol or version.
  std::string text = "lockstep rendezvous 1 ";
  text += side == Side::agent ? 'A' : 'H';
  text.append(agent.begin(), agent.end());
  text.append(hub.begin(), hub.end());
  text += run_id;
  Mac mac{};
  unsigned size = 0;
  const auto* const made =
      HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  LOCKSTEP_CHECK(made != nullptr && size == mac.size());
  return mac;
}

bool same_mac(const Mac& a, const Mac& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace lockstep::rendezvous::hub
