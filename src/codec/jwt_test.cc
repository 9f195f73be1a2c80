#include "codec/jwt.h"

#include "base/error_testing.h"
#include "base/text.h"
#include "codec/base64.h"

#include <gtest/gtest.h>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

namespace lockstep::codec {
namespace {

using TestKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

std::string pem_of(EVP_PKEY* key, const char* password = nullptr) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
  EXPECT_EQ(PEM_write_bio_PKCS8PrivateKey(bio.get(), key,
                                          password == nullptr ? nullptr : EVP_aes_128_cbc(),
                                          password, password == nullptr ? 0 : 6, nullptr, nullptr),
            1);
  std::string text(BIO_ctrl_pending(bio.get()), '\0');
  BIO_read(bio.get(), text.data(), static_cast<int>(text.size()));
  return text;
}

std::string from_base64url(std::string text) {
  replace_all(text, "-", "+");
  replace_all(text, "_", "/");
  text.resize((text.size() + 3) / 4 * 4, '=');
  return base64_decode(text).value();
}

bool verifies(EVP_PKEY* key, const std::string& text, const std::string& signature) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  return EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                          signature.size(), reinterpret_cast<const unsigned char*>(text.data()),
                          text.size()) == 1;
}

TEST(Jwt, IsSignedWithTheKey) {
  const TestKey key(EVP_RSA_gen(2048), EVP_PKEY_free);
  const std::string claims = R"({"iss":"a@b.example","exp":3600})";
  const auto token = sign_jwt(pem_of(key.get()), "k\"1", claims);
  ASSERT_TRUE(token) << token.error().message;
  const auto parts = split(*token, '.');
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(from_base64url(parts[0]), R"({"alg":"RS256","typ":"JWT","kid":"k\"1"})");
  EXPECT_EQ(from_base64url(parts[1]), claims);
  EXPECT_TRUE(verifies(key.get(), parts[0] + "." + parts[1], from_base64url(parts[2])));
  EXPECT_FALSE(verifies(key.get(), parts[0] + ".x" + parts[1], from_base64url(parts[2])));
  const auto anonymous = sign_jwt(pem_of(key.get()), "", claims).value();
  EXPECT_EQ(from_base64url(split(anonymous, '.')[0]), R"({"alg":"RS256","typ":"JWT"})");
}

TEST(Jwt, KeysThatAreNone) {
  const TestKey curve(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const TestKey rsa(EVP_RSA_gen(2048), EVP_PKEY_free);
  const std::string whole = pem_of(rsa.get());
  const std::pair<std::string, const char*> keys[] = {
      {"", "it can't be read"},
      {"secret", "it can't be read"},
      {whole.substr(0, whole.size() / 2), "it can't be read"},
      {pem_of(rsa.get(), "secret"), "it can't be read"},
      {pem_of(curve.get()), "it is not RSA"}};
  for (const auto& [pem, why] : keys) {
    const auto token = sign_jwt(pem, "k", "{}");
    ASSERT_FALSE(token);
    EXPECT_EQ(token.error().message, std::string("the private key can't be used: ") + why);
    EXPECT_EQ(code_of(token), Errc::invalid_input);
  }
}

}  // namespace
}  // namespace lockstep::codec
