// Wraps OpenSSL: settings, verification, and a session between two memory buffers.
#include "http/tls.h"

#include <fmt/core.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

namespace lockstep::http {
namespace {

constexpr std::size_t kPiece = 16 << 10;

// Empties OpenSSL's error queue into one text, oldest error first.
std::string openssl_says() {
  std::string text;
  while (const unsigned long code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    if (!text.empty()) text += ", ";
    text += reason != nullptr ? reason : fmt::format("OpenSSL error {:x}", code);
  }
  return text.empty() ? "no reason given" : text;
}

// The static OpenSSL knows the place of Debian's authorities. Other systems keep theirs elsewhere.
void trust_this_machine(SSL_CTX* context) {
  SSL_CTX_set_default_verify_paths(context);
  if (getenv("SSL_CERT_FILE") != nullptr) return;
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (access(path, R_OK) == 0 && SSL_CTX_load_verify_file(context, path) == 1) break;
  }
  // A missing file is not an error here: without any authority the handshake fails with a clear
  // text.
  ERR_clear_error();
}

Failure bad_file(std::string_view what, const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) {
    ERR_clear_error();
    return fail_sys(fmt::format("read the {} '{}'", what, path), errno);
  }
  return fail(Errc::invalid_input,
              fmt::format("the {} '{}' can't be used: {}", what, path, openssl_says()));
}

Status load(SSL_CTX* context, const TlsSettings& settings) {
  if (settings.ca_file.empty()) {
    trust_this_machine(context);
  } else if (SSL_CTX_load_verify_file(context, settings.ca_file.c_str()) != 1) {
    return bad_file("certificate authority", settings.ca_file);
  }
  if (!settings.more_ca_file.empty() &&
      SSL_CTX_load_verify_file(context, settings.more_ca_file.c_str()) != 1)
    return bad_file("certificate authority", settings.more_ca_file);
  if (settings.cert_file.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, settings.cert_file.c_str()) != 1)
    return bad_file("certificate", settings.cert_file);
  const std::string& key = settings.key_file.empty() ? settings.cert_file : settings.key_file;
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1)
    return bad_file("key", key);
  if (SSL_CTX_check_private_key(context) != 1) {
    return fail(Errc::invalid_input, fmt::format("the key '{}' is not that of the certificate '{}'",
                                                 key, settings.cert_file));
  }
  return {};
}

bool set_name(SSL* ssl, const std::string& host) {
  in6_addr address{};
  const bool digits = inet_pton(AF_INET, host.c_str(), &address) == 1 ||
                      inet_pton(AF_INET6, host.c_str(), &address) == 1;
  // An address must match an IP entry of the certificate, not a name.
  if (digits) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1;
  // Wildcards such as "f*.example" are refused, as browsers do.
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(ssl, host.c_str()) == 1 &&
         // Servers with several names choose their certificate by this extension (SNI).
         SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  const_cast<char*>(host.c_str())) == 1;  // OpenSSL's macro has a C cast
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::make(const TlsSettings& settings) {
  // Do not read OpenSSL's configuration file: it can load code.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr);
  ERR_clear_error();
  SSL_CTX* raw = SSL_CTX_new(TLS_client_method());
  if (raw == nullptr) return fail(Errc::internal, "set up TLS: " + openssl_says());
  std::shared_ptr<const TlsContext> context(new TlsContext(raw, settings.hint));
  // TLS 1.0 and 1.1 are deprecated (RFC 8996).
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);  // NOLINT: OpenSSL's macro
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  // OpenSSL must never ask a terminal for the password of a key.
  SSL_CTX_set_default_passwd_cb(raw, [](char*, int, int, void*) { return 0; });
  LOCKSTEP_TRY(load(raw, settings));
  return context;
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

Result<std::unique_ptr<TlsSession>> TlsSession::make(std::shared_ptr<const TlsContext> context,
                                                     const std::string& host) {
  std::unique_ptr<TlsSession> session(new TlsSession(std::move(context)));
  session->host_ = host;
  session->ssl_ = SSL_new(session->context_->raw());
  if (session->ssl_ == nullptr) return fail(Errc::internal, "set up TLS: " + openssl_says());
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  LOCKSTEP_CHECK(in != nullptr && out != nullptr);
  // Memory buffers instead of the socket: the event loop does all reading and writing, and TLS
  // never blocks.
  SSL_set_bio(session->ssl_, in, out);
  if (!set_name(session->ssl_, host))
    return fail(Errc::invalid_input,
                fmt::format("a TLS server needs a valid host name (got '{}')", host));
  SSL_set_connect_state(session->ssl_);
  // The client speaks first: this produces its hello, which take_output() returns.
  LOCKSTEP_TRY(session->advance());
  return session;
}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
}

Status TlsSession::feed(std::string_view bytes, std::string& plain) {
  // The error queue belongs to the thread: old errors would be blamed on this call.
  ERR_clear_error();
  while (!bytes.empty()) {
    const auto size = static_cast<int>(std::min(bytes.size(), kPiece));
    LOCKSTEP_CHECK(BIO_write(SSL_get_rbio(ssl_), bytes.data(), size) == size);
    bytes.remove_prefix(static_cast<std::size_t>(size));
    // Not ready: the bytes belong to the handshake.
    if (!ready_) LOCKSTEP_TRY(advance());
    if (ready_) LOCKSTEP_TRY(read_all(plain));
  }
  return {};
}

Status TlsSession::advance() {
  const int got = SSL_do_handshake(ssl_);
  if (got == 1) {
    ready_ = true;
    const std::string plain = std::exchange(waiting_, {});
    return write(plain);
  }
  const int error = SSL_get_error(ssl_, got);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return {};
  return failure("TLS handshake");
}

Status TlsSession::read_all(std::string& plain) {
  std::array<char, kPiece> piece;
  while (true) {
    std::size_t got = 0;
    if (SSL_read_ex(ssl_, piece.data(), piece.size(), &got) == 1) {
      plain.append(piece.data(), got);
      continue;
    }
    const int error = SSL_get_error(ssl_, 0);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return {};
    if (error == SSL_ERROR_ZERO_RETURN) {
      ended_ = true;
      return {};
    }
    return failure("TLS");
  }
}

Status TlsSession::write(std::string_view plain) {
  if (!ready_) {
    waiting_ += plain;
    return {};
  }
  ERR_clear_error();
  while (!plain.empty()) {
    std::size_t put = 0;
    if (SSL_write_ex(ssl_, plain.data(), std::min(plain.size(), kPiece), &put) != 1)
      return failure("TLS");
    plain.remove_prefix(put);
  }
  return {};
}

std::string TlsSession::take_output() {
  std::string bytes;
  BIO* out = SSL_get_wbio(ssl_);
  bytes.resize(BIO_ctrl_pending(out));
  // The caller sends these bytes.
  if (!bytes.empty()) BIO_read(out, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

Failure TlsSession::failure(std::string_view what) const {
  // Without this check a refused certificate would be reported as a mere handshake failure.
  const long verdict = SSL_get_verify_result(ssl_);
  std::string text = openssl_says();
  if (verdict != X509_V_OK) {
    return fail(Errc::denied,
                fmt::format("{}: the certificate of '{}' is refused: {}", what, host_,
                            X509_verify_cert_error_string(verdict)),
                context_->hint());
  }
  return fail(Errc::denied, fmt::format("{}: {}", what, text));
}

}  // namespace lockstep::http
