// An HTTP/1.1 client for one server. Connections are kept and used again, as many as there are
// exchanges at once. Redirects are answers like any other. A proxy passes https on unread
// (CONNECT), and is asked for plain http as such.
//
// No callback runs inside the call that asks; any callback may destroy its exchange, the client or
// ask again. An exchange may outlive its client.
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
  std::string target = "/";   // path and query, coded
  std::vector<Field> fields;  // besides Host, Content-Length and Connection
  std::string body;
  std::chrono::milliseconds timeout{10'000};  // to the last byte; of a stream to its head
  // A kept connection may break just as the call is sent; then the call is sent once more if doing
  // it twice does no harm.
  bool repeatable = false;
  std::size_t body_limit = 16 << 20;  // of a whole answer, packed and not
  bool gzip = false;                  // a whole answer may come packed, and is given unpacked
  std::string shown = {};             // begins errors instead of method and address
};

struct Answer {
  ResponseHead head;
  std::string body;
};

struct StreamHandlers {
  std::function<void(const ResponseHead&)> head;
  std::function<void(std::string_view)> body;  // pieces as they come
  // Once, last of all: the server has ended the answer, or what went wrong.
  std::function<void(Status)> ended;
};

// One call and its answer. Destroying it ends it: nothing is called any more.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Whether a byte of the call may have reached the server: not before TLS and a proxy have agreed.
  // Also valid inside its callbacks.
  virtual bool sent() const = 0;
};

class Client {
 public:
  using Done = std::function<void(Result<Answer>)>;

  Client(io::Loop& loop, Origin origin);
  ~Client();

  // Errors begin with method and address: "POST http://10.0.0.1:2379/v3/kv/put: connect to ...".
  [[nodiscard]] std::unique_ptr<Exchange> ask(Call call, Done done);
  [[nodiscard]] std::unique_ptr<Exchange> stream(Call call, StreamHandlers handlers);
  const Origin& origin() const;
  std::size_t idle() const;  // connections kept

  struct Pool;

 private:
  std::shared_ptr<Pool> pool_;
};

}  // namespace lockstep::http
