// Signs tokens with OpenSSL.
#include "codec/jwt.h"

#include "codec/base64.h"
#include "codec/json.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

namespace lockstep::codec {
namespace {

using JwtKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Failure bad_jwt_key(std::string_view why) {
  // OpenSSL queues errors. A later call must not find an old error.
  ERR_clear_error();
  return fail(Errc::invalid_input, "the private key can't be used: " + std::string(why),
              "it must be an unencrypted RSA key in PEM (BEGIN PRIVATE KEY)");
}

Result<JwtKey> read_jwt_key(const std::string& pem) {
  // Do not read OpenSSL's configuration file: it can load code.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  LOCKSTEP_CHECK(bio != nullptr);
  // OpenSSL must never ask a terminal for a password.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  JwtKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr), EVP_PKEY_free);
  if (!key) return bad_jwt_key("it can't be read");
  if (EVP_PKEY_is_a(key.get(), "RSA") != 1) return bad_jwt_key("it is not RSA");
  return key;
}

}  // namespace

Result<std::string> sign_jwt(const std::string& pem, const std::string& key_id,
                             std::string_view claims) {
  LOCKSTEP_TRY_ASSIGN(const JwtKey key, read_jwt_key(pem));
  nlohmann::ordered_json head = {{"alg", "RS256"}, {"typ", "JWT"}};
  if (!key_id.empty()) head["kid"] = key_id;
  std::string token = base64url_encode(print_json(head)) + '.' + base64url_encode(claims);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(token.data());
  std::size_t size = 0;
  std::string signature(static_cast<std::size_t>(EVP_PKEY_get_size(key.get())), '\0');
  size = signature.size();
  if (!context ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     bytes, token.size()) != 1)
    return bad_jwt_key("nothing can be signed with it");
  // EVP_PKEY_get_size() is only an upper limit.
  signature.resize(size);
  return token + '.' + base64url_encode(signature);
}

}  // namespace lockstep::codec
