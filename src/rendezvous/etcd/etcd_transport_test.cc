#include "rendezvous/etcd/etcd_transport.h"

#include "http/client_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace lockstep::rendezvous::etcd {
namespace {

using http::testing::ScriptedServer;
using std::chrono::milliseconds;
using Say = ScriptedServer::Say;

std::string reply(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class Transport : public ::testing::Test {
 protected:
  int serve(ScriptedServer::Script script) {
    servers_.push_back(std::make_unique<ScriptedServer>(loop_, std::move(script)));
    access_.endpoints.push_back({"127.0.0.1", servers_.back()->port()});
    return servers_.back()->port();
  }

  Result<http::Answer> ask(bool repeatable, milliseconds timeout = milliseconds(400)) {
    if (!transport_) transport_ = *EtcdTransport::make(loop_, access_);
    std::optional<Result<http::Answer>> got;
    EtcdTransport::Request request;
    request.repeatable = repeatable;
    request.timeout = timeout;
    request.attempt = std::max(milliseconds(100), timeout / 4);
    transport_->ask(request, [&](Result<http::Answer> answer) {
      got = std::move(answer);
      loop_.stop();
    });
    loop_.run();
    return *got;
  }

  io::Loop loop_;
  EtcdAccess access_;
  std::vector<std::unique_ptr<ScriptedServer>> servers_;
  std::unique_ptr<EtcdTransport> transport_;
};

TEST_F(Transport, NextOneAnswers) {
  int first = 0;
  int second = 0;
  serve([&](const std::string&) {
    ++first;
    return Say{reply(503, "no leader")};
  });
  serve([&](const std::string&) {
    ++second;
    return Say{reply(200, "yes")};
  });
  for (int i = 0; i < 3; ++i) {
    const auto answer = ask(true, milliseconds(20'000));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "yes");
  }
  EXPECT_EQ(first, 1);  // not asked again
  EXPECT_EQ(second, 3);
}

TEST_F(Transport, SilentOneIsLeft) {
  serve([](const std::string&) { return Say{""}; });
  serve([](const std::string&) { return Say{reply(200, "yes")}; });
  EXPECT_TRUE(ask(true));
}

// Whether the call took effect is unknown.
TEST_F(Transport, NotTwiceWhatMustNotBe) {
  int calls = 0;
  const int port = serve([&](const std::string&) {
    ++calls;
    return Say{"", true};
  });
  const auto answer = ask(false);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "GET http://127.0.0.1:" + std::to_string(port) +
                                        "/: the connection was closed before an answer came");
  EXPECT_EQ(calls, 1);
}

TEST_F(Transport, WhatWasNeverSentMayBe) {
  access_.endpoints.push_back({"127.0.0.1", 1});
  serve([](const std::string&) { return Say{reply(200, "yes")}; });
  EXPECT_TRUE(ask(false));
}

TEST_F(Transport, GivesUpAndNamesAll) {
  access_.endpoints.push_back({"127.0.0.1", 1});
  serve([](const std::string&) { return Say{reply(503, "no leader")}; });
  const auto begin = io::Clock::now();
  const auto answer = ask(true);
  const auto took = io::Clock::now() - begin;
  ASSERT_FALSE(answer);
  EXPECT_GT(took, milliseconds(300));
  EXPECT_LT(took, milliseconds(1000));
  for (const char* words : {"127.0.0.1:1/: connect to 127.0.0.1:1: Connection refused",
                            "HTTP 503: no leader", ", gave up after 0."})
    EXPECT_NE(answer.error().message.find(words), std::string::npos) << answer.error().message;
}

// The last attempt has too little time for an answer; the error of the attempt before says more.
TEST_F(Transport, LastAttemptHidesNothing) {
  int calls = 0;
  serve([&](const std::string&) { return ++calls == 1 ? Say{reply(503, "no leader")} : Say{""}; });
  const auto answer = ask(true, milliseconds(90));  // less than an attempt's 100 ms
  ASSERT_FALSE(answer);
  EXPECT_GT(calls, 1);
  EXPECT_NE(answer.error().message.find("HTTP 503: no leader, gave up"), std::string::npos)
      << answer.error().message;
}

TEST_F(Transport, OtherAnswersAreAnswers) {
  serve([](const std::string&) { return Say{reply(404, "{\"errorCode\":100}")}; });
  const auto answer = ask(true);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->head.status, 404);
}

TEST_F(Transport, MayGoInTheMiddle) {
  serve([](const std::string&) { return Say{reply(200, "yes")}; });
  transport_ = *EtcdTransport::make(loop_, access_);
  bool called = false;
  const auto id = transport_->ask({}, [&](const Result<http::Answer>&) { called = true; });
  transport_->forget(id);
  transport_->ask({}, [&](const Result<http::Answer>& answer) {
    EXPECT_TRUE(answer);
    transport_.reset();
    loop_.stop();
  });
  loop_.run();
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace lockstep::rendezvous::etcd
