// The client behind a proxy. tests/integration/test_web.py tests it with real TLS.
#include "base/error_testing.h"
#include "http/client.h"
#include "http/client_testing.h"

#include <gtest/gtest.h>

#include <optional>

namespace lockstep::http {
namespace {

using std::chrono::milliseconds;
using testing::ScriptedServer;
using Say = ScriptedServer::Say;

class ProxiedClient : public ::testing::Test {
 protected:
  // A client of a server whose name only the proxy can resolve.
  void behind(ScriptedServer::Script script, bool tls) {
    server_ = std::make_unique<ScriptedServer>(loop_, std::move(script));
    Origin origin{"cloud.example", tls ? 443 : 80, nullptr};
    if (tls) origin.tls = TlsContext::make({}).value();
    origin.proxy = Proxy{"127.0.0.1", server_->port(), "Basic dTpw", "HTTPS_PROXY"};
    client_ = std::make_unique<Client>(loop_, std::move(origin));
  }

  Result<Answer> ask(Call call = {}) {
    std::optional<Result<Answer>> got;
    io::Timer guard(loop_);
    guard.start(std::chrono::seconds(10), [&] { loop_.stop(); });
    call.timeout = std::min(call.timeout, milliseconds(5000));
    const auto exchange = client_->ask(std::move(call), [&](Result<Answer> answer) {
      got = std::move(answer);
      loop_.stop();
    });
    loop_.run();
    sent_ = exchange->sent();
    return got ? *got : Result<Answer>(fail(Errc::internal, "no call back"));
  }

  std::string error(const Result<Answer>& answer) {
    return answer ? "fine" : answer.error().message;
  }
  std::string proxy() const {
    return "the proxy http://127.0.0.1:" + std::to_string(server_->port()) + " (HTTPS_PROXY)";
  }

  io::Loop loop_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<Client> client_;
  bool sent_ = false;
};

TEST_F(ProxiedClient, PlainHttpAsksForTheWholeAddress) {
  std::string heard;
  behind(
      [&](const std::string& request) {
        heard = request;
        return Say{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"};
      },
      false);
  Call call;
  call.target = "/a?b";
  ASSERT_EQ(error(ask(call)), "fine");
  EXPECT_EQ(heard,
            "GET http://cloud.example/a?b HTTP/1.1\r\nHost: cloud.example\r\n"
            "Proxy-Authorization: Basic dTpw\r\n\r\n");
  EXPECT_TRUE(sent_);
}

TEST_F(ProxiedClient, HttpsAsksForATunnel) {
  std::string heard;
  behind(
      [&](const std::string& request) {
        heard = request;
        return Say{"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 4\r\n\r\nno",
                   true};
      },
      true);
  const auto answer = ask();
  EXPECT_EQ(heard,
            "CONNECT cloud.example:443 HTTP/1.1\r\nHost: cloud.example:443\r\n"
            "Proxy-Authorization: Basic dTpw\r\n\r\n");
  ASSERT_FALSE(answer);
  EXPECT_EQ(error(answer), "GET https://cloud.example:443/: " + proxy() +
                               " refuses to connect to cloud.example:443: HTTP 407");
  EXPECT_EQ(code_of(answer), Errc::denied);
  EXPECT_EQ(answer.error().hint,
            "give the proxy user and password: HTTPS_PROXY=http://USER:PASSWORD@127.0.0.1:" +
                std::to_string(server_->port()));
  EXPECT_FALSE(sent_);
}

TEST_F(ProxiedClient, ProxiesThatPassNothingOn) {
  const std::pair<Say, std::string> cases[] = {
      {{"HTTP/1.1 502 Bad Gateway\r\n\r\n"}, " refuses to connect to cloud.example:443: HTTP 502"},
      {{"", true}, " did not connect to cloud.example:443: connection closed"},
      {{"SSH-2.0-x\r\n"}, " did not connect to cloud.example:443: not an HTTP answer: 'SSH-2.0-x'"},
      {{"HTTP/1.1 200 OK\r\n\r\nboo"},
       " sends bytes before the first request to cloud.example:443"}};
  for (const auto& [say, why] : cases) {
    behind([&say = say](const std::string&) { return say; }, true);
    Call call;
    call.shown = "RunInstances in us-east-1";
    EXPECT_EQ(error(ask(call)), "RunInstances in us-east-1: " + proxy() + why);
    EXPECT_FALSE(sent_);
  }
}

TEST_F(ProxiedClient, AProxyThatIsSilentOrNotThere) {
  behind([](const std::string&) { return Say{}; }, true);
  Call call;
  call.timeout = milliseconds(30);
  EXPECT_EQ(error(ask(call)),
            "GET https://cloud.example:443/: no answer within 30 ms (the proxy gives no answer)");
  const std::string named = proxy();
  behind([](const std::string&) { return Say{}; }, true);
  const std::string gone = proxy();
  server_.reset();
  EXPECT_EQ(error(ask()),
            "GET https://cloud.example:443/: connect to " + gone + ": Connection refused");
  EXPECT_FALSE(sent_);
}

// The server behind the tunnel does not speak TLS: not a byte of the call has left.
TEST_F(ProxiedClient, NothingIsSaidBeforeTlsIsThere) {
  behind(
      [](const std::string& request) {
        return Say{request.starts_with("CONNECT") ? "HTTP/1.0 200 Connection established\r\n\r\n"
                                                  : "HTTP/1.1 400 Bad Request\r\n\r\n",
                   false};
      },
      true);
  Call call;
  call.timeout = milliseconds(100);
  EXPECT_NE(error(ask(call)), "fine");
  EXPECT_FALSE(sent_);
}

}  // namespace
}  // namespace lockstep::http
