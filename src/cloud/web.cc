// The Web of production. Each Web has its own event loop, which runs during a question.
#include "cloud/web.h"

#include "base/log.h"
#include "base/text.h"
#include "cloud/server_clock.h"
#include "cloud/shown_question.h"
#include "codec/url.h"
#include "http/proxy.h"
#include "io/loop.h"
#include "io/signals_blocked.h"

#include <fmt/core.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace lockstep::cloud {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostThreads = 64;
// Send non-repeatable questions on a fresh connection, or on a connection used this recently. An
// idle connection may close before the server reads the request, which looks like a lost answer.
constexpr auto kFresh = std::chrono::seconds(3);

// Reads the variables once, before any thread starts.
std::map<std::string, std::string, std::less<>> read_web_variables() {
  std::map<std::string, std::string, std::less<>> found;
  for (const char* name :
       {"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY",
        "no_proxy", "NO_PROXY", "REQUEST_METHOD", "LOCKSTEP_CA_FILE"}) {
    if (const char* value = getenv(name)) found[name] = value;
  }
  return found;
}

// The state shared by all Webs of a command.
class WebGround {
 public:
  explicit WebGround(const WebSettings& settings)
      : stop_fd_(settings.stop_fd), variables_(read_web_variables()) {}

  // Loads the certificate authorities at first use, since loading takes many milliseconds.
  Result<std::shared_ptr<const http::TlsContext>> tls() {
    const std::lock_guard lock(mutex_);
    if (!tls_) {
      tls_ = http::TlsContext::make(
          {.ca_file = {},
           .more_ca_file = variable("LOCKSTEP_CA_FILE").value_or(""),
           .cert_file = {},
           .key_file = {},
           .hint = "behind a proxy that opens TLS, name its authority in LOCKSTEP_CA_FILE; else "
                   "look at this machine's clock and at its authorities (SSL_CERT_FILE)"});
    }
    return *tls_;
  }

  Result<std::optional<http::Proxy>> proxy(const codec::Url& url) const {
    return http::choose_proxy([this](std::string_view name) { return variable(name); }, url.host,
                              url.port, url.tls);
  }

  int stop_fd() const { return stop_fd_; }
  bool stopped() const {
    pollfd stop{stop_fd_, POLLIN, 0};
    return stop_fd_ >= 0 && poll(&stop, 1, 0) > 0;
  }

 private:
  std::optional<std::string> variable(std::string_view name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::nullopt : std::optional(found->second);
  }

  int stop_fd_;
  std::map<std::string, std::string, std::less<>> variables_;
  std::mutex mutex_;
  std::optional<Result<std::shared_ptr<const http::TlsContext>>> tls_;
};

// Returns whether plain http is allowed. Credentials must never cross a network in plain text. The
// link-local metadata service of a rented machine speaks only http.
bool may_be_plain(const std::string& host) {
  constexpr std::uint32_t kMetadata = 0xA9FEA9FE;  // 169.254.169.254
  in_addr four{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1)
    return ntohl(four.s_addr) >> 24 == 127 || ntohl(four.s_addr) == kMetadata;
  return host == "localhost" || host == "::1";
}

Status check_question(const Question& question, const codec::Url& url) {
  const auto broken = [](std::string_view text) {
    return std::any_of(text.begin(), text.end(),
                       [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7F; });
  };
  if (!url.tls && !may_be_plain(url.host)) {
    return fail(Errc::invalid_input,
                fmt::format("'{}' is plain http, which would show keys to the network",
                            printable(url.host)),
                "use https://, or an address of this machine");
  }
  for (const http::Field& field : question.fields) {
    if (broken(field.value)) {
      return fail(Errc::invalid_input,
                  fmt::format("the value for the header '{}' has a line break or another control "
                              "character in it",
                              field.name),
                  "look at the key it comes from");
    }
  }
  if (broken(question.target) || question.target.find(' ') != std::string::npos)
    return fail(Errc::invalid_input, "a path with white space or control characters in it");
  return {};
}

class NetWeb : public Web {
 public:
  explicit NetWeb(std::shared_ptr<WebGround> ground) : ground_(std::move(ground)) {}

  Reply ask(const Question& question) override {
    const auto from = io::Clock::now();
    const std::int64_t asked_ms = now_ms();
    Reply reply = ask_now(question);
    if (reply.answer) note_server_clock(reply.answer->head.field("date"), asked_ms, now_ms());
    const auto took = std::chrono::round<milliseconds>(io::Clock::now() - from).count();
    if (!log::enabled(log::Level::debug)) return reply;
    log::debug("{}{}: {}, {} ms", question.shown.empty() ? "" : question.shown + ": ",
               shown_question(question),
               reply.answer ? fmt::format("HTTP {}, {} bytes", reply.answer->head.status,
                                          reply.answer->body.size())
                            : reply.answer.error().message,
               took);
    return reply;
  }

  void at_once(const std::vector<std::function<void(Web&)>>& jobs) override {
    // Each thread has a loop and connections of its own, which later rounds use again.
    while (others_.size() < std::min(jobs.size(), kMostThreads))
      others_.push_back(std::make_unique<NetWeb>(ground_));
    std::atomic<std::size_t> next = 0;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < std::min(jobs.size(), kMostThreads); ++i) {
      const io::SignalsBlocked blocked;
      threads.emplace_back([&jobs, &next, web = others_[i].get()] {
        // Each thread takes the next job, so a slow job delays no other.
        for (std::size_t job = next++; job < jobs.size(); job = next++)
          jobs[job](*web);
      });
    }
    for (std::thread& thread : threads)
      thread.join();
  }

  std::int64_t now_ms() const override {
    return std::chrono::duration_cast<milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }

  Status pause(milliseconds time) override {
    pollfd stop{ground_->stop_fd(), POLLIN, 0};
    const auto until = io::Clock::now() + time;
    while (true) {
      const auto left = std::chrono::ceil<milliseconds>(until - io::Clock::now()).count();
      const auto patience = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
      // poll() ignores a negative descriptor and just sleeps.
      if (poll(&stop, 1, patience) > 0) return stopped();
      if (left <= 0) return {};
    }
  }

 private:
  struct Line {
    std::unique_ptr<http::Client> client;
    std::string path;  // of the base, without a slash at its end
    io::TimePoint used;
  };

  static Failure stopped() { return fail(Errc::canceled, "stopped"); }

  Reply ask_now(const Question& question) {
    Reply reply{fail(Errc::internal, "no answer"), false};
    auto line = line_for(question);
    if (line && ground_->stopped()) line = stopped();
    if (!line) {
      reply.answer = tl::make_unexpected(std::move(line).error());
      if (!question.shown.empty())
        reply.answer = tl::make_unexpected(std::move(reply.answer).error().within(question.shown));
      return reply;
    }
    converse(*(*line)->client, call_of(question, (*line)->path), question, reply);
    (*line)->used = io::Clock::now();
    return reply;
  }

  void converse(http::Client& client, http::Call call, const Question& question, Reply& reply) {
    bool done = false;
    std::optional<io::Watch> stop;
    if (ground_->stop_fd() >= 0) {
      stop.emplace(loop_, ground_->stop_fd());
      stop->start(io::kReadable, [this](int) { loop_.stop(); });
    }
    const auto exchange = client.ask(std::move(call), [&](Result<http::Answer> answer) {
      reply.answer = std::move(answer);
      done = true;
      loop_.stop();
    });
    loop_.run();
    reply.sent = exchange->sent();
    // Without an answer only a signal can have stopped the loop.
    if (done) return;
    const std::string what =
        question.shown.empty() ? question.method + " " + client.origin().text() : question.shown;
    reply.answer = tl::make_unexpected(stopped().value().within(what));
  }

  static http::Call call_of(const Question& question, const std::string& path) {
    http::Call call;
    call.method = question.method;
    call.target = path + question.target;
    call.fields = question.fields;
    // Send a User-Agent: some servers refuse requests without it.
    call.fields.push_back({"User-Agent", "lockstep/" LOCKSTEP_VERSION});
    call.body = question.body;
    call.timeout = question.timeout;
    call.repeatable = question.repeatable;
    call.body_limit = question.body_limit;
    call.gzip = question.gzip;
    call.shown = question.shown;
    return call;
  }

  // Returns the connections to the question's server.
  Result<Line*> line_for(const Question& question) {
    LOCKSTEP_TRY_ASSIGN(const codec::Url url, codec::parse_url(question.base, "the address"));
    LOCKSTEP_TRY(check_question(question, url));
    loop_.run_once();  // notices connections closed by the server
    Line& line = lines_[question.base];
    const bool stale = !question.repeatable && io::Clock::now() - line.used > kFresh;
    if (line.client && !stale) return &line;
    line.path = url.target.substr(0, url.target.find_last_not_of('/') + 1);
    http::Origin origin{url.host, url.port, nullptr, std::nullopt};
    if (url.tls) {
      LOCKSTEP_TRY_ASSIGN(origin.tls, ground_->tls());
    }
    // Plain http reaches only this machine and the metadata service, so no proxy.
    if (url.tls || !may_be_plain(url.host)) {
      LOCKSTEP_TRY_ASSIGN(origin.proxy, ground_->proxy(url));
    }
    line.client = std::make_unique<http::Client>(loop_, std::move(origin));
    return &line;
  }

  std::shared_ptr<WebGround> ground_;
  io::Loop loop_;
  std::map<std::string, Line> lines_;  // by Question::base
  std::vector<std::unique_ptr<NetWeb>> others_;
};

}  // namespace

Result<std::unique_ptr<Web>> open_web(const WebSettings& settings) {
  return std::make_unique<NetWeb>(std::make_shared<WebGround>(settings));
}

}  // namespace lockstep::cloud
