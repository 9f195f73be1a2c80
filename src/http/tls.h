// TLS for clients without I/O: bytes in, bytes out (OpenSSL behind memory buffers). Always checks
// the server's certificate and name. Initialises OpenSSL when the first TlsContext is made.
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
  std::string ca_file;            // "": the authorities trusted by this machine
  std::string more_ca_file = {};  // trusted in addition
  std::string cert_file;          // our certificate, for servers that ask for one
  std::string key_file;           // "": the key is in cert_file
  // Advice for a refused certificate.
  std::string hint =
      "name the certificate's authority (ca_cert), or name the host as in the certificate";
};

// Settings shared by connections.
class TlsContext {
 public:
  // Loads the files. Fails with invalid_input if one cannot be used.
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

// One connection. After each call the caller sends the bytes from take_output().
class TlsSession {
 public:
  // Starts a session. host: a name or numeric address, which the certificate must contain.
  static Result<std::unique_ptr<TlsSession>> make(std::shared_ptr<const TlsContext> context,
                                                  const std::string& host);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Takes bytes from the peer and appends decrypted text to `plain`. Fails with denied if TLS or
  // the certificate is refused.
  Status feed(std::string_view bytes, std::string& plain);
  // Encrypts text. Text written before the handshake is done is sent afterwards.
  Status write(std::string_view plain);
  // Returns the bytes to be sent to the peer.
  std::string take_output();
  bool ready() const { return ready_; }  // the handshake is done
  bool ended() const { return ended_; }  // the peer has announced the end

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
