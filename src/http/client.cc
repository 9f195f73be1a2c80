// Exchanges over kept connections, proxies and TLS.
#include "http/client.h"

#include "base/text.h"
#include "codec/url.h"
#include "http/gunzip.h"
#include "http/stream.h"
#include "http/tunnel.h"
#include "io/dialer.h"
#include "io/place_text.h"
#include "io/tcp_probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::http {

using std::chrono::milliseconds;

std::string Origin::text() const {
  return (tls ? "https://" : "http://") + io::place_text(host, port);
}

// State shared by exchanges: the idle connections.
struct Client::Pool {
  // Enough for a client that asks a few things at once. More idle connections would only hold
  // descriptors.
  static constexpr std::size_t kKept = 4;

  Pool(io::Loop& on, Origin to) : loop(on), origin(std::move(to)) {}

  std::unique_ptr<Stream> take() {
    if (idle.empty()) return nullptr;
    auto stream = std::move(idle.back());
    idle.pop_back();
    return stream;
  }

  // Keeps an idle connection. Any event on it ends it: a server that sends unasked bytes is out of
  // step.
  void keep(std::unique_ptr<Stream> stream) {
    if (idle.size() >= kKept) return;
    Stream* raw = stream.get();
    const auto drop = [this, raw] {
      std::erase_if(idle, [raw](const auto& kept) { return kept.get() == raw; });
    };
    // Listen while idle, to notice a server that closes. Without this the next call would find a
    // dead connection.
    stream->listen({[drop](std::string_view) { drop(); }, [drop](const Status&) { drop(); }});
    idle.push_back(std::move(stream));
  }

  io::Loop& loop;
  Origin origin;
  std::vector<std::unique_ptr<Stream>> idle;
};

namespace {

std::string print_call(const Call& call, const Origin& origin) {
  const std::string host = codec::host_text(origin.host, origin.port, origin.tls != nullptr);
  // A proxy for plain http must get the whole address. With TLS the tunnel hides the request from
  // the proxy.
  const bool whole_address = origin.proxy && !origin.tls;
  std::string text = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n", call.method,
                                 whole_address ? "http://" + host : "", call.target, host);
  if (whole_address && !origin.proxy->authorization.empty())
    text += fmt::format("Proxy-Authorization: {}\r\n", origin.proxy->authorization);
  for (const Field& field : call.fields)
    text += fmt::format("{}: {}\r\n", field.name, field.value);
  if (call.gzip) text += "Accept-Encoding: gzip\r\n";
  // A server may refuse a POST or PUT without Content-Length, even an empty one.
  if (!call.body.empty() || call.method != "GET")
    text += fmt::format("Content-Length: {}\r\n", call.body.size());
  text += "\r\n";
  text += call.body;
  return text;
}

// Names the call, for errors.
std::string call_text(const Call& call, const Origin& origin) {
  if (!call.shown.empty()) return call.shown;
  return fmt::format("{} {}{}", call.method, origin.text(), call.target);
}

// Unpacks a gzip answer. Fails if the server used another coding.
Status unpack(Answer& answer, std::size_t limit) {
  const std::string coding = to_lower(answer.head.field("content-encoding"));
  if (coding.empty() || coding == "identity" || answer.body.empty()) return {};
  if (coding != "gzip" && coding != "x-gzip")
    return fail(Errc::corrupt, "unexpected content encoding: '" + printable(coding, 60) + "'");
  LOCKSTEP_TRY_ASSIGN(answer.body, gunzip(answer.body, limit));
  return {};
}

class RealExchange : public Exchange {
 public:
  RealExchange(std::shared_ptr<Client::Pool> pool, Call call, StreamHandlers handlers, bool whole)
      : pool_(std::move(pool)),
        call_(std::move(call)),
        handlers_(std::move(handlers)),
        whole_(whole),
        parser_(call_.method == "HEAD"),
        until_(io::Clock::now() + call_.timeout),
        timer_(pool_->loop) {
    // One timer covers connecting, proxy and answer: the caller cares for the total.
    timer_.start(call_.timeout, [this] {
      finish(fail(Errc::timeout, fmt::format("no answer within {} ms{}", call_.timeout.count(),
                                             dial_     ? " (not connected)"
                                             : tunnel_ ? " (the proxy gives no answer)"
                                                       : "")));
    });
    stream_ = pool_->take();
    used_before_ = stream_ != nullptr;
    if (used_before_) {
      converse();
    } else {
      dial();
    }
  }

  bool sent() const override { return sent_ || (stream_ && stream_->spoke()); }

 private:
  void dial() {
    const Origin& origin = pool_->origin;
    io::Dialer::Target to{"connect to " + io::place_text(origin.host, origin.port), origin.host,
                          origin.port};
    if (const auto& proxy = origin.proxy)
      to = {"connect to " + proxy->text(), proxy->host, proxy->port};
    io::DialRules rules;
    // Connecting gives up a little before the call does, because its error says more.
    rules.patience = until_ - io::Clock::now() - milliseconds(5);
    // No second round: the caller knows better whether to try again, and how long.
    rules.once = true;
    dial_ = std::make_unique<io::Dialer>(
        pool_->loop, std::move(to), rules,
        io::Dialer::Events{.connected =
                               [this](io::Fd fd) {
                                 dial_.reset();
                                 io::tune_client(fd.get());
                                 // Only https needs a tunnel. Plain http goes to the proxy as such.
                                 if (pool_->origin.proxy && pool_->origin.tls)
                                   return ask_proxy(std::move(fd));
                                 connected(std::move(fd));
                               },
                           .round_failed = {},
                           .gave_up =
                               [this](Error error) {
                                 dial_.reset();
                                 finish(tl::make_unexpected(std::move(error)));
                               }});
  }

  void ask_proxy(io::Fd fd) {
    const Origin& to = pool_->origin;
    tunnel_ = std::make_unique<Tunnel>(pool_->loop, std::move(fd), *to.proxy, to.host, to.port,
                                       [this](Result<io::Fd> passed) {
                                         tunnel_.reset();
                                         if (passed) return connected(std::move(*passed));
                                         finish(tl::make_unexpected(std::move(passed).error()));
                                       });
  }

  void connected(io::Fd fd) {
    std::unique_ptr<TlsSession> tls;
    if (pool_->origin.tls) {
      auto session = TlsSession::make(pool_->origin.tls, pool_->origin.host);
      if (!session) return finish(tl::make_unexpected(std::move(session).error()));
      tls = std::move(*session);
    }
    stream_ = std::make_unique<Stream>(pool_->loop, std::move(fd), std::move(tls));
    converse();
  }

  void converse() {
    stream_->listen({[this](std::string_view bytes) { on_bytes(bytes); },
                     [this](Status status) { on_end(std::move(status)); }});
    stream_->write(print_call(call_, pool_->origin));
  }

  void on_bytes(std::string_view bytes) {
    const auto before = parser_.state();
    // Remember the state before: the head's callback must run once.
    std::string body;
    const std::size_t taken = parser_.feed(bytes, body);
    received_ += body.size();
    const auto here = calls_.witness();
    if (before == ResponseParser::State::head && parser_.state() != before && report_head(here))
      return;
    if (whole_ && received_ > call_.body_limit) {
      return finish(
          fail(Errc::corrupt, fmt::format("the answer is larger than {} bytes", call_.body_limit)));
    }
    if (!body.empty() && handlers_.body) {
      const auto call = handlers_.body;
      // A copy: the callback may destroy this exchange and the handlers with it.
      call(body);
      if (here.gone()) return;
    }
    if (parser_.state() == ResponseParser::State::bad)
      return finish(fail(Errc::corrupt, parser_.error()));
    if (parser_.state() != ResponseParser::State::complete) return;
    sent_ = true;
    // Extra bytes after the answer mean a broken server: do not keep the connection.
    if (parser_.keep_alive() && taken == bytes.size()) pool_->keep(std::move(stream_));
    finish({});
  }

  // Reports the head. Returns true if a callback destroyed this exchange.
  bool report_head(const CallbackScope::Witness& here) {
    if (parser_.state() == ResponseParser::State::bad) return false;  // reported by the caller
    // The timeout of a stream covers its head only.
    if (!whole_) timer_.cancel();
    if (const auto call = handlers_.head) call(parser_.head());
    return here.gone();
  }

  void on_end(Status status) {
    // A kept connection may close just as the call is sent. Without a byte of an answer it is not
    // known whether the server has read the call, so only a repeatable call is sent again.
    if (used_before_ && parser_.empty() && call_.repeatable) {
      used_before_ = false;
      sent_ = true;
      stream_.reset();
      return dial();
    }
    if (!status) return finish(std::move(status));
    if (parser_.end() == ResponseParser::State::complete) return finish({});
    finish(fail(Errc::unavailable, parser_.error()));
  }

  void finish(Status status) {
    // Keep the answer: the stream is gone below, but callbacks may ask sent().
    sent_ = sent();
    timer_.cancel();
    dial_.reset();
    tunnel_.reset();
    stream_.reset();
    // Release everything first: the callback may destroy this exchange.
    const auto call = std::exchange(handlers_.ended, nullptr);
    if (!call) return;
    if (status) return call({});
    call(tl::make_unexpected(std::move(status).error().within(call_text(call_, pool_->origin))));
  }

  std::shared_ptr<Client::Pool> pool_;
  Call call_;
  StreamHandlers handlers_;
  bool whole_;
  ResponseParser parser_;
  io::TimePoint until_;
  io::Timer timer_;
  std::unique_ptr<io::Dialer> dial_;
  std::unique_ptr<Tunnel> tunnel_;
  std::unique_ptr<Stream> stream_;
  std::size_t received_ = 0;
  bool used_before_ = false;  // the connection carried earlier exchanges
  bool sent_ = false;
  CallbackScope calls_;
};

}  // namespace

Client::Client(io::Loop& loop, Origin origin)
    : pool_(std::make_shared<Pool>(loop, std::move(origin))) {}

Client::~Client() = default;

const Origin& Client::origin() const {
  return pool_->origin;
}

std::size_t Client::idle() const {
  return pool_->idle.size();
}

std::unique_ptr<Exchange> Client::ask(Call call, Done done) {
  auto answer = std::make_shared<Answer>();
  StreamHandlers handlers;
  handlers.head = [answer](const ResponseHead& head) { answer->head = head; };
  handlers.body = [answer](std::string_view bytes) { answer->body += bytes; };
  // Unpack the whole answer at once: the checksum comes last.
  const std::size_t limit = call.gzip ? call.body_limit : 0;
  handlers.ended = [answer, limit, what = call_text(call, origin()),
                    done = std::move(done)](Status status) {
    if (!status) return done(tl::make_unexpected(std::move(status).error()));
    if (limit > 0) status = unpack(*answer, limit);
    if (!status) return done(tl::make_unexpected(std::move(status).error().within(what)));
    done(std::move(*answer));
  };
  return std::make_unique<RealExchange>(pool_, std::move(call), std::move(handlers), true);
}

std::unique_ptr<Exchange> Client::stream(Call call, StreamHandlers handlers) {
  return std::make_unique<RealExchange>(pool_, std::move(call), std::move(handlers), false);
}

}  // namespace lockstep::http
