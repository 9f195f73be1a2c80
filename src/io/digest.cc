#include "io/digest.h"

#include "io/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <vector>

namespace lockstep::io {
namespace {

constexpr std::size_t kDigestChunk = 256UL << 10;

}  // namespace

// Keeps OpenSSL's types out of the header.
struct Digest::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> md{EVP_MD_CTX_new(), EVP_MD_CTX_free};

  void update(std::string_view bytes) const {
    LOCKSTEP_CHECK(EVP_DigestUpdate(md.get(), bytes.data(), bytes.size()) == 1);
  }
  void update_length(std::uint64_t length) const {
    // Little-endian on every machine, because digests are kept in files.
    std::array<char, 8> bytes;
    for (char& byte : bytes) {
      byte = static_cast<char>(length & 0xff);
      length >>= 8;
    }
    update({bytes.data(), bytes.size()});
  }
};

// Do not read OpenSSL's configuration file: a machine's file may demand a module that this binary
// does not have, and then no digest can be made.
Digest::Digest() {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  context_ = std::make_unique<Context>();
  LOCKSTEP_CHECK(context_->md && EVP_DigestInit_ex(context_->md.get(), EVP_sha256(), nullptr) == 1);
}

Digest::~Digest() = default;

// The length goes in front, so that "ab", "c" and "a", "bc" have different digests.
void Digest::add(std::string_view part) {
  context_->update_length(part.size());
  context_->update(part);
}

Result<std::uint64_t> Digest::add_bytes_of(const std::string& path) {
  // O_NONBLOCK: the path may be a FIFO, and open() would wait for a writer.
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_sys("read " + path, errno);
  std::vector<char> bytes(kDigestChunk);
  std::uint64_t length = 0;
  ssize_t got = 0;
  while ((got = read(fd.get(), bytes.data(), bytes.size())) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_sys("read " + path, errno);
    context_->update({bytes.data(), static_cast<std::size_t>(got)});
    length += static_cast<std::uint64_t>(got);
  }
  return length;
}

// Adds the length after the bytes, because a file may grow while it is read.
Status Digest::add_file(const std::string& path) {
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t length, add_bytes_of(path));
  context_->update_length(length);
  return {};
}

std::string Digest::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  LOCKSTEP_CHECK(EVP_DigestFinal_ex(context_->md.get(), digest.data(), &size) == 1);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest.at(i) >> 4];
    text += kDigits[digest.at(i) & 15];
  }
  return text;
}

std::string digest_of(std::string_view bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.hex();
}

Result<std::string> sha256_of_file(const std::string& path) {
  Digest digest;
  LOCKSTEP_TRY(digest.add_bytes_of(path));
  return digest.hex();
}

}  // namespace lockstep::io
