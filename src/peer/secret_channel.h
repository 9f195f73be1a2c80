// An encrypted connection between two ends that share a key: TLS 1.3 (OpenSSL) with a pre-shared
// key and an ephemeral key exchange, without certificates. An end without the key fails in the
// handshake, on either side. Blocking, with timeouts.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

namespace lockstep::peer {

class SecretChannel {
 public:
  enum class Side { serves, takes };
  // Does the handshake. socket: connected, blocking. The process must ignore SIGPIPE.
  static Result<SecretChannel> open(io::Fd socket, const std::string& key, Side side,
                                    std::chrono::milliseconds patience);

  // Sets how long a read or write may make no progress.
  void set_patience(std::chrono::milliseconds patience);
  Status read(char* bytes, std::size_t size);  // all `size` bytes
  Result<std::string> read(std::size_t size);
  Status write(std::string_view bytes);
  int socket() const { return socket_.get(); }

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
    void operator()(ssl_st* ssl) const;
  };
  SecretChannel() = default;
  Failure failure(const char* what, int got) const;

  io::Fd socket_;
  std::unique_ptr<std::string> key_;  // OpenSSL's callbacks keep a pointer to it
  std::unique_ptr<ssl_ctx_st, Free> context_;
  std::unique_ptr<ssl_st, Free> ssl_;
};

}  // namespace lockstep::peer
