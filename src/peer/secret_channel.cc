#include "peer/secret_channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace lockstep::peer {
namespace {

constexpr std::string_view kIdentity = "lockstep-peer";
constexpr const char* kSuite = "TLS_AES_128_GCM_SHA256";
constexpr std::array<unsigned char, 2> kSuiteNumber = {0x13, 0x01};

const std::string& key_of(SSL* ssl) {
  return *static_cast<const std::string*>(SSL_get_app_data(ssl));
}

// Returns the shared key in OpenSSL's form; nullptr: out of memory.
SSL_SESSION* session_of(SSL* ssl) {
  const std::string& key = key_of(ssl);
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* suite = SSL_CIPHER_find(ssl, kSuiteNumber.data());
  // The key, the suite and the version together stand for an earlier session.
  if (session != nullptr && suite != nullptr &&
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                                  key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, suite) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int find_session(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  *session = nullptr;
  // Unknown identity: go on without a key, and let the handshake fail.
  if (std::string_view(reinterpret_cast<const char*>(identity), size) != kIdentity) return 1;
  *session = session_of(ssl);
  return *session != nullptr ? 1 : 0;
}

int use_session(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, std::size_t* size,
                SSL_SESSION** session) {
  *session = nullptr;
  // OpenSSL asks with another digest only if the server wants another cipher suite. Our servers do
  // not.
  if (digest != nullptr && EVP_MD_is_a(digest, "SHA256") != 1) return 1;
  *session = session_of(ssl);
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *size = kIdentity.size();
  return *session != nullptr ? 1 : 0;
}

SSL_CTX* make_context(SecretChannel::Side side) {
  // Do not read OpenSSL's configuration file: it can load code.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr);
  SSL_CTX* context = SSL_CTX_new(TLS_method());
  if (context == nullptr) return nullptr;
  // NOLINTBEGIN(cppcoreguidelines-pro-type-cstyle-cast): OpenSSL's macros
  const bool set = SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                   SSL_CTX_set_ciphersuites(context, kSuite) == 1 &&
                   // Without tickets the server sends nothing after the handshake.
                   SSL_CTX_set_num_tickets(context, 0) == 1;
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // NOLINTEND(cppcoreguidelines-pro-type-cstyle-cast)
  if (side == SecretChannel::Side::serves) {
    SSL_CTX_set_psk_find_session_callback(context, find_session);
  } else {
    SSL_CTX_set_psk_use_session_callback(context, use_session);
    // Trust no authority: a server that shows a certificate instead of the key must fail.
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  }
  if (set) return context;
  SSL_CTX_free(context);
  return nullptr;
}

Failure no_tls() {
  return fail(Errc::internal, "set up the encrypted connection between hosts");
}

}  // namespace

void SecretChannel::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

void SecretChannel::Free::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

Result<SecretChannel> SecretChannel::open(io::Fd socket, const std::string& key, Side side,
                                          std::chrono::milliseconds patience) {
  SecretChannel channel;
  channel.socket_ = std::move(socket);
  // On the heap, because OpenSSL keeps the address while the object moves.
  channel.key_ = std::make_unique<std::string>(key);
  channel.set_patience(patience);
  channel.context_.reset(make_context(side));
  if (!channel.context_) return no_tls();
  channel.ssl_.reset(SSL_new(channel.context_.get()));
  SSL* ssl = channel.ssl_.get();
  if (ssl == nullptr || SSL_set_fd(ssl, channel.socket_.get()) != 1) return no_tls();
  SSL_set_app_data(ssl, channel.key_.get());
  // Old errors of this thread would be reported as ours.
  ERR_clear_error();
  // TLS 1.3 with a pre-shared key: each end proves knowledge of the key, and certificates are not
  // needed.
  const int got = side == Side::serves ? SSL_accept(ssl) : SSL_connect(ssl);
  if (got != 1) return channel.failure("the handshake failed", got);
  // A handshake without the pre-shared key would not count as a reused session.
  if (SSL_session_reused(ssl) != 1)
    return fail(Errc::denied, "the other end does not have the key");
  return channel;
}

void SecretChannel::set_patience(std::chrono::milliseconds patience) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience);
  timeval time{};
  time.tv_sec = seconds.count();
  time.tv_usec = std::chrono::microseconds(patience - seconds).count();
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

Failure SecretChannel::failure(const char* what, int got) const {
  // Save errno first: the next call may change it.
  const int number = errno;
  const int error = SSL_get_error(ssl_.get(), got);
  // With SO_RCVTIMEO a blocking read times out as EAGAIN, which OpenSSL reports as WANT_READ.
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
    return fail(Errc::timeout, "the other end has been silent for too long");
  if (error == SSL_ERROR_SYSCALL && number != 0) return fail_sys(what, number);
  const unsigned long code = ERR_get_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return fail(Errc::unavailable,
              std::string(what) + ": " + (reason == nullptr ? "it was closed" : reason));
}

Status SecretChannel::read(char* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    ERR_clear_error();
    errno = 0;
    std::size_t got = 0;
    const int fine = SSL_read_ex(ssl_.get(), bytes + done, size - done, &got);
    if (fine != 1 && errno == EINTR) continue;
    if (fine != 1) return failure("the connection broke", fine);
    done += got;
  }
  return {};
}

Result<std::string> SecretChannel::read(std::size_t size) {
  std::string bytes(size, '\0');
  LOCKSTEP_TRY(read(bytes.data(), size));
  return bytes;
}

Status SecretChannel::write(std::string_view bytes) {
  while (!bytes.empty()) {
    ERR_clear_error();
    errno = 0;
    std::size_t put = 0;
    const int fine = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &put);
    if (fine != 1 && errno == EINTR) continue;
    if (fine != 1) return failure("the connection broke", fine);
    bytes.remove_prefix(put);
  }
  return {};
}

}  // namespace lockstep::peer
