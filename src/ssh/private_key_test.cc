#include "ssh/private_key.h"

#include <gtest/gtest.h>

namespace lockstep::ssh {
namespace {

// The beginnings of files made by ssh-keygen.
TEST(PrivateKey, SaysWhetherOnlyAPassphraseOpensIt) {
  EXPECT_FALSE(
      needs_passphrase("-----BEGIN OPENSSH PRIVATE KEY-----\n"
                       "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"));
  EXPECT_TRUE(
      needs_passphrase("-----BEGIN OPENSSH PRIVATE KEY-----\n"
                       "b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABBWVPJPZs\n"));
  EXPECT_TRUE(needs_passphrase("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"));
  EXPECT_TRUE(needs_passphrase("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIC3TBXBgkqhkiG9w0BBQ0\n"));
  EXPECT_FALSE(needs_passphrase("-----BEGIN RSA PRIVATE KEY-----\nMIIC\n"));
  for (const char* text : {"", "ssh-ed25519 AAAA me", "-----BEGIN OPENSSH PRIVATE KEY-----",
                           "-----BEGIN OPENSSH PRIVATE KEY-----\n!!!!"})
    EXPECT_FALSE(needs_passphrase(text)) << text;
}

}  // namespace
}  // namespace lockstep::ssh
