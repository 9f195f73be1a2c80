// An HTTP/1.1 client for one server. Connections are kept and reused, one for each concurrent
// exchange. Redirects are returned like any other answer. For https a proxy passes bytes on unread
// (CONNECT); plain http is requested from the proxy itself.
//
// No callback runs inside the requesting call. A callback may destroy its exchange or the client,
// or make new requests. An exchange may outlive its client.
#pragma once

#include "base/error.h"
#include "http/proxy.h"
#include "http/response_parse.h"
#include "http/tls.h"
#include "io/loop.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::http {

struct Origin {
  std::string host;
  int port = 80;
  std::shared_ptr<const TlsContext> tls;  // nullptr: plain http
  std::optional<Proxy> proxy = {};

  std::string text() const;  // "https://HOST:PORT"
};

struct Call {
  std::string method = "GET";
  std::string target = "/";   // path and query, percent-encoded
  std::vector<Field> fields;  // in addition to Host, Content-Length and Connection
  std::string body;
  std::chrono::milliseconds timeout{10'000};  // until the last byte; for a stream until the head
  // A kept connection may break just as the call is sent. true: the call is then sent again, since
  // doing it twice does no harm.
  bool repeatable = false;
  std::size_t body_limit = 16 << 20;  // for a whole answer, packed and unpacked
  bool gzip = false;                  // a whole answer may arrive as gzip, and is returned unpacked
  std::string shown = {};             // shown in errors instead of method and address
};

struct Answer {
  ResponseHead head;
  std::string body;
};

struct StreamHandlers {
  std::function<void(const ResponseHead&)> head;
  std::function<void(std::string_view)> body;  // pieces as they arrive
  // Called once, last of all: the server has ended the answer, or the exchange failed.
  std::function<void(Status)> ended;
};

// A call and its answer. Destroying the exchange ends the call: no callback follows.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Returns whether a byte of the call may have reached the server. Never before the proxy and TLS
  // have agreed. Also valid inside the exchange's callbacks.
  virtual bool sent() const = 0;
};

class Client {
 public:
  using Done = std::function<void(Result<Answer>)>;

  Client(io::Loop& loop, Origin origin);
  ~Client();

  // Sends a call and collects the whole answer. Errors begin with method and address: "POST
  // http://10.0.0.1:2379/v3/kv/put: connect to ...".
  [[nodiscard]] std::unique_ptr<Exchange> ask(Call call, Done done);
  // Sends a call and passes on the answer as it arrives.
  [[nodiscard]] std::unique_ptr<Exchange> stream(Call call, StreamHandlers handlers);
  const Origin& origin() const;
  std::size_t idle() const;  // connections kept for reuse

  struct Pool;

 private:
  std::shared_ptr<Pool> pool_;
};

}  // namespace lockstep::http
