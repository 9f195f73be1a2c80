#include "http/client.h"

#include "base/error_testing.h"
#include "http/client_testing.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <string.h>

namespace lockstep::http {
namespace {

using std::chrono::milliseconds;
using testing::ScriptedServer;
using Say = ScriptedServer::Say;

std::string ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class HttpClient : public ::testing::Test {
 protected:
  void serve(ScriptedServer::Script script) {
    server_ = std::make_unique<ScriptedServer>(loop_, std::move(script));
    client_ = std::make_unique<Client>(loop_, Origin{"127.0.0.1", server_->port(), nullptr});
  }

  Result<Answer> ask(Call call = {}) {
    std::optional<Result<Answer>> got;
    call.timeout = std::min(call.timeout, milliseconds(5000));
    const auto exchange =
        client_->ask(std::move(call), [&](Result<Answer> answer) { got = std::move(answer); });
    until([&] { return got.has_value(); });
    return got ? *got : Result<Answer>(fail(Errc::internal, "no call back"));
  }

  void until(const std::function<bool()>& fact) {
    io::Timer guard(loop_);
    bool over = false;
    guard.start(std::chrono::seconds(10), [&] { over = true; });
    while (!fact() && !over)
      uv_pass();
    EXPECT_FALSE(over) << "not in time";
  }

  // Runs one pass of the loop, waiting for an event.
  void uv_pass() {
    io::Timer tick(loop_);
    tick.start(milliseconds(1), [this] { loop_.stop(); });
    loop_.run();
  }

  std::string error_of(const std::string& said, bool close = true) {
    serve([said, close](const std::string&) { return Say{said, close}; });
    const auto answer = ask();
    if (answer) return "fine: " + answer->body;
    const std::string start = "GET " + place() + "/: ";
    EXPECT_TRUE(answer.error().message.starts_with(start)) << answer.error().message;
    return answer.error().message.substr(start.size());
  }

  std::string place() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

  io::Loop loop_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(HttpClient, SaysWhatItIsTold) {
  std::string heard;
  serve([&](const std::string& request) {
    heard = request;
    return Say{ok("yes")};
  });
  Call call;
  call.method = "PUT";
  call.target = "/v2/keys/a%20b?x=1";
  call.fields = {{"Content-Type", "text/plain"}};
  call.body = "value";
  const auto answer = ask(call);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->head.status, 200);
  EXPECT_EQ(answer->body, "yes");
  EXPECT_EQ(heard, "PUT /v2/keys/a%20b?x=1 HTTP/1.1\r\nHost: 127.0.0.1:" +
                       std::to_string(server_->port()) +
                       "\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nvalue");
}

TEST_F(HttpClient, KeepsConnections) {
  serve([](const std::string&) { return Say{ok("yes")}; });
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(ask());
  EXPECT_EQ(server_->accepted(), 1);
  EXPECT_EQ(client_->idle(), 1U);
  server_->hang_up();
  until([&] { return client_->idle() == 0; });
  ASSERT_TRUE(ask());
  EXPECT_EQ(server_->accepted(), 2);
}

// Unrequested bytes on a kept connection must not be taken for the next answer.
TEST_F(HttpClient, DropsConnectionsThatSpeakUnasked) {
  serve([](const std::string&) { return Say{ok("yes") + ok("again")}; });
  ASSERT_TRUE(ask());
  EXPECT_EQ(client_->idle(), 0U);
  serve([](const std::string&) { return Say{ok("yes")}; });
  ASSERT_TRUE(ask());
  server_->say("boo");
  until([&] { return client_->idle() == 0; });
}

// The server closes the kept connection just as the second call arrives.
TEST_F(HttpClient, RepeatsOnlyWhatMayBe) {
  for (const bool repeatable : {true, false}) {
    int calls = 0;
    serve([&calls](const std::string&) { return ++calls == 2 ? Say{"", true} : Say{ok("yes")}; });
    ASSERT_TRUE(ask());
    Call call;
    call.repeatable = repeatable;
    const auto second = ask(call);
    EXPECT_EQ(second.has_value(), repeatable);
    EXPECT_EQ(calls, repeatable ? 3 : 2);
    if (!second) {
      EXPECT_EQ(second.error().message,
                "GET " + place() + "/: the connection was closed before an answer came");
    }
  }
}

TEST_F(HttpClient, ClearErrors) {
  EXPECT_EQ(error_of("220 smtp\r\n"), "not an HTTP answer: '220 smtp'");
  EXPECT_EQ(error_of(""), "the connection was closed before an answer came");
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"),
            "the connection was closed in the middle of the answer");
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\n\r\nuntil the end"), "fine: until the end");
  server_.reset();
  const auto refused = ask();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys, ECONNREFUSED);
  EXPECT_TRUE(refused.error().message.ends_with(": Connection refused")) << refused.error().message;
}

TEST_F(HttpClient, Limits) {
  serve([](const std::string&) { return Say{ok(std::string(2000, 'x'))}; });
  Call call;
  call.body_limit = 1999;
  EXPECT_EQ(ask(call).error().message,
            "GET " + place() + "/: the answer is larger than 1999 bytes");
  call.body_limit = 2000;
  EXPECT_TRUE(ask(call));
}

TEST_F(HttpClient, PackedAnswers) {
  // "packed" by gzip -9n
  const std::string packed(
      "\x1f\x8b\x08\0\0\0\0\0\x02\x03\x2b\x48\x4c\xce\x4e\x4d\x01\0\x10\xb4\xf6\x21\x06\0\0\0", 26);
  std::string heard;
  std::string coding = "gzip";
  serve([&](const std::string& request) {
    heard = request;
    return Say{"HTTP/1.1 200 OK\r\nContent-Encoding: " + coding + "\r\n" +
               ok(packed).substr(strlen("HTTP/1.1 200 OK\r\n"))};
  });
  Call call;
  EXPECT_EQ(ask(call)->body, packed);
  EXPECT_EQ(heard.find("Accept-Encoding"), std::string::npos);
  call.gzip = true;
  EXPECT_EQ(ask(call)->body, "packed");
  EXPECT_NE(heard.find("\r\nAccept-Encoding: gzip\r\n"), std::string::npos);
  coding = "br";
  EXPECT_EQ(ask(call).error().message, "GET " + place() + "/: unexpected content encoding: 'br'");
  coding = "gzip";
  call.body_limit = 5;
  EXPECT_FALSE(ask(call));
}

TEST_F(HttpClient, Deadline) {
  serve([](const std::string&) { return Say{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"}; });
  Call call;
  call.timeout = milliseconds(30);
  const auto late = ask(call);
  ASSERT_FALSE(late);
  EXPECT_EQ(code_of(late), Errc::timeout);
  EXPECT_EQ(late.error().message, "GET " + place() + "/: no answer within 30 ms");
}

TEST_F(HttpClient, Streams) {
  serve([](const std::string&) {
    return Say{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"};
  });
  Call call;
  call.timeout = milliseconds(30);  // to the head only
  std::string heard;
  std::optional<Status> ended;
  int status = 0;
  const auto exchange =
      client_->stream(call, {[&](const ResponseHead& head) { status = head.status; },
                             [&](std::string_view piece) { heard += piece; },
                             [&](Status why) { ended = std::move(why); }});
  until([&] { return heard == "one"; });
  EXPECT_EQ(status, 200);
  io::Timer later(loop_);
  bool passed = false;
  later.start(milliseconds(60), [&] { passed = true; });
  until([&] { return passed; });
  EXPECT_FALSE(ended);
  server_->say("3\r\ntwo\r\n");
  until([&] { return heard == "onetwo"; });
  server_->say("0\r\n\r\n");
  until([&] { return ended.has_value(); });
  EXPECT_TRUE(*ended);
}

TEST_F(HttpClient, MayBeDestroyedAnywhere) {
  serve([](const std::string&) { return Say{ok("yes")}; });
  bool called = false;
  {
    const auto forgotten = client_->ask({}, [&](const Result<Answer>&) { called = true; });
  }
  std::unique_ptr<Exchange> own;
  own = client_->ask({}, [&](const Result<Answer>& answer) {
    EXPECT_TRUE(answer);
    own.reset();
    client_.reset();
  });
  until([&] { return client_ == nullptr; });
  EXPECT_FALSE(called);
}

TEST_F(HttpClient, ManyAtOnce) {
  serve([](const std::string& request) { return Say{ok(request.substr(5, 2))}; });
  std::vector<std::unique_ptr<Exchange>> all;
  std::string heard;
  all.reserve(20);
  for (int i = 10; i < 30; ++i) {
    Call call;
    call.target = "/" + std::to_string(i);
    all.push_back(client_->ask(call, [&heard, i](Result<Answer> answer) {
      EXPECT_TRUE(answer && answer->body == std::to_string(i));
      heard += 'x';
    }));
  }
  until([&] { return heard.size() == 20; });
  EXPECT_EQ(client_->idle(), 4U);
}

}  // namespace
}  // namespace lockstep::http
