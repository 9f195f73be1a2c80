// Helpers for the store's tests and fuzz targets: an engine with in-memory peers, and bytes as hex.
#pragma once

#include "store/engine.h"
#include "store/wire.h"

#include <time.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::store::testing {

// Returns the CPU time of this thread alone, so that a busy machine does not matter.
inline double cpu_seconds() {
  struct timespec now {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

inline int hex_digit(char c) {
  return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

// Converts "05 6b31" to 3 bytes.
inline std::string unhex(std::string_view text) {
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    if (c == ' ') continue;
    if (high < 0) {
      high = hex_digit(c);
    } else {
      bytes.push_back(static_cast<char>(high * 16 + hex_digit(c)));
      high = -1;
    }
  }
  return bytes;
}

inline std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// One connection without a socket: reader and session, paired as in the server.
class Peer {
 public:
  explicit Peer(Engine& engine) : engine_(engine), reader_(engine.limits()) {}
  ~Peer() { engine_.drop(session_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Serves all complete requests. After an error nothing more happens.
  void feed(std::string_view bytes) {
    Request request;
    while (open()) {
      const auto step = reader_.next(bytes, request);
      if (step == RequestReader::Step::more) return;
      if (step == RequestReader::Step::error) {
        session_.verdict = reader_.error();
        return;
      }
      session_.dialect = reader_.dialect();
      ++requests;
      if (auto status = engine_.handle(session_, request); !status) {
        session_.verdict = status.error().message;
      }
    }
  }
  // Like feed(), in pieces of `size` bytes. Each piece lies in memory of its own that is freed at
  // once, so that sanitizers find dangling views.
  void feed_pieces(std::string_view bytes, std::size_t size) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
      const std::unique_ptr<char[]> piece(new char[std::min(size, bytes.size())]);
      bytes.copy(piece.get(), size);
      feed({piece.get(), std::min(size, bytes.size())});
    }
  }
  std::string take() { return std::exchange(session_.out, {}); }
  // Takes and returns hex.
  std::string ask(std::string_view hex_bytes) {
    feed(unhex(hex_bytes));
    return hex(take());
  }
  bool open() const { return session_.verdict.empty(); }
  const std::string& verdict() const { return session_.verdict; }
  Session& session() { return session_; }
  RequestReader& reader() { return reader_; }
  std::size_t requests = 0;

 private:
  Engine& engine_;
  RequestReader reader_;
  Session session_;
};

// Returns the bytes of one request.
inline std::string bytes_of(Dialect dialect, const Request& request) {
  std::string out;
  LOCKSTEP_CHECK(put_request(out, dialect, request).has_value());
  return out;
}

}  // namespace lockstep::store::testing
