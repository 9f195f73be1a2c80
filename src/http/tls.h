// TLS as a client, without I/O: bytes in, bytes out (OpenSSL behind memory buffers). The server's
// certificate and name are always checked. OpenSSL is first touched when a TlsContext is made.
#pragma once

#include "base/error.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

struct ssl_ctx_st;
struct ssl_st;

namespace lockstep::http {

struct TlsSettings {
  std::string ca_file;            // "": the authorities that this machine trusts
  std::string more_ca_file = {};  // trusted as well
  std::string cert_file;          // ours, where the server asks for one
  std::string key_file;           // "": in cert_file
  // What to do about a certificate that is refused.
  std::string hint =
      "name the authority that signed it (ca_cert), or the host as the certificate does";
};

// What all connections of one set of settings share.
class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>> make(const TlsSettings& settings);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  ssl_ctx_st* raw() const { return context_; }
  const std::string& hint() const { return hint_; }

 private:
  TlsContext(ssl_ctx_st* context, std::string hint) : context_(context), hint_(std::move(hint)) {}
  ssl_ctx_st* context_;
  std::string hint_;
};

// One connection. After each call the caller sends what take_output() returns.
class TlsSession {
 public:
  // host: a name, or an address in digits; the certificate must be made out to it.
  static Result<std::unique_ptr<TlsSession>> make(std::shared_ptr<const TlsContext> context,
                                                  const std::string& host);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Takes bytes from the other end and appends the text in them to `plain`.
  Status feed(std::string_view bytes, std::string& plain);
  // The text goes out when the handshake is done.
  Status write(std::string_view plain);
  std::string take_output();
  bool ready() const { return ready_; }  // the handshake is done
  bool ended() const { return ended_; }  // the other end has said that nothing more comes

 private:
  explicit TlsSession(std::shared_ptr<const TlsContext> context) : context_(std::move(context)) {}
  Status advance();
  Status read_all(std::string& plain);
  Failure failure(std::string_view what) const;

  std::shared_ptr<const TlsContext> context_;
  ssl_st* ssl_ = nullptr;
  std::string host_;
  std::string waiting_;  // written before the handshake was done
  bool ready_ = false;
  bool ended_ = false;
};

}  // namespace lockstep::http
