#include "cloud/key_pair.h"

#include "base/id.h"
#include "codec/base64.h"
#include "io/fd.h"
#include "io/own_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>

namespace lockstep::cloud {
namespace {

constexpr std::string_view kKeyType = "ssh-ed25519";
constexpr std::size_t kRawKey = 32;  // both halves
constexpr std::size_t kKeyBlock = 8;
constexpr std::size_t kKeyColumns = 70;
constexpr std::size_t kMostKeyFile = 16UL << 10;

void put_number(std::string& out, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8)
    out += static_cast<char>((number >> shift) & 0xff);
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

std::string public_blob(std::string_view public_key) {
  std::string blob;
  put_text(blob, kKeyType);
  put_text(blob, public_key);
  return blob;
}

// Writes a file completely or not at all. Other users cannot read the file, not even for a moment.
Status write_private(const std::string& path, std::string_view text) {
  const std::string draft = path + "." + random_suffix(12) + ".tmp";
  const io::Fd fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_sys("make " + draft, errno);
  Status written = io::write_all(fd.get(), text, draft);
  if (written && fsync(fd.get()) != 0) written = fail_sys("write " + draft, errno);
  if (written && rename(draft.c_str(), path.c_str()) != 0)
    written = fail_sys("replace " + path, errno);
  if (!written) unlink(draft.c_str());
  return written;
}

}  // namespace

// Follows OpenSSH's PROTOCOL.key.
KeyPair key_pair_text(std::string_view seed, std::string_view public_key, std::uint32_t check,
                      std::string_view comment) {
  const std::string blob = public_blob(public_key);
  std::string secret;
  put_number(secret, check);
  put_number(secret, check);
  secret += blob;
  put_text(secret, std::string(seed) + std::string(public_key));
  put_text(secret, comment);
  // Pad with 1, 2, 3, ... to a whole block, as the format demands.
  for (char next = 1; secret.size() % kKeyBlock != 0; ++next)
    secret += next;

  std::string all("openssh-key-v1\0", 15);
  put_text(all, "none");  // cipher
  put_text(all, "none");  // key derivation
  put_text(all, "");
  put_number(all, 1);
  put_text(all, blob);
  put_text(all, secret);
  const std::string coded = codec::base64_encode(all);

  KeyPair pair;
  pair.private_text = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
  for (std::size_t at = 0; at < coded.size(); at += kKeyColumns)
    pair.private_text += coded.substr(at, kKeyColumns) + "\n";
  pair.private_text += "-----END OPENSSH PRIVATE KEY-----\n";
  pair.public_line = std::string(kKeyType) + " " + codec::base64_encode(blob);
  if (!comment.empty()) pair.public_line += " " + std::string(comment);
  return pair;
}

Result<KeyPair> new_key_pair(std::string_view comment) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), EVP_PKEY_free);
  std::array<unsigned char, kRawKey> seed{};
  std::array<unsigned char, kRawKey> half{};
  std::size_t seed_size = seed.size();
  std::size_t half_size = half.size();
  // A fresh key for the rental: the user's own keys stay out of the rental.
  if (!key || EVP_PKEY_get_raw_private_key(key.get(), seed.data(), &seed_size) != 1 ||
      EVP_PKEY_get_raw_public_key(key.get(), half.data(), &half_size) != 1 ||
      seed_size != kRawKey || half_size != kRawKey)
    return fail(Errc::internal, "no ed25519 key can be made");
  const auto bytes = [](const auto& raw) {
    return std::string_view(reinterpret_cast<const char*>(raw.data()), raw.size());
  };
  // The format has this number twice. Readers find a wrong passphrase by a difference.
  std::uint32_t check = 0;
  for (const char byte : random_key(4))
    check = check << 8 | static_cast<unsigned char>(byte);
  return key_pair_text(bytes(seed), bytes(half), check, comment);
}

Result<KeyPair> keep_key_pair(const std::string& path, std::string_view comment) {
  auto secret = io::read_file(path, kMostKeyFile);
  auto half = io::read_file(path + ".pub", kMostKeyFile);
  if (secret && half) {
    while (half->ends_with('\n'))
      half->pop_back();
    return KeyPair{std::move(*secret), std::move(*half)};
  }
  // A full disk may have left only one half. Then make a new pair.
  if (!secret && secret.error().code != Errc::not_found) return Failure(secret.error());
  LOCKSTEP_TRY(io::make_folders(path.substr(0, path.rfind('/'))));
  LOCKSTEP_TRY_ASSIGN(KeyPair pair, new_key_pair(comment));
  LOCKSTEP_TRY(write_key_pair(path, pair));
  return pair;
}

Status write_key_pair(const std::string& path, const KeyPair& pair) {
  // Write the private half last: keep_key_pair() makes a new pair while it is missing.
  LOCKSTEP_TRY(write_private(path + ".pub", pair.public_line + "\n"));
  return write_private(path, pair.private_text);
}

void remove_key_pair(const std::string& path) {
  unlink(path.c_str());
  unlink((path + ".pub").c_str());
}

}  // namespace lockstep::cloud
