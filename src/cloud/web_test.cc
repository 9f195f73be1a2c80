// Tests the real Web against servers on their own threads. TLS and proxies: test_web.py.
#include "cloud/web.h"

#include "base/error_testing.h"
#include "http/client_testing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace lockstep::cloud {
namespace {

using Server = http::testing::ScriptedServer;

std::string http_ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class NetWebTest : public ::testing::Test {
 protected:
  void serve(Server::Script script) {
    server_ = std::make_unique<Server>(loop_, std::move(script));
    // This timer keeps the loop running.
    keeper_ = std::make_unique<io::Timer>(loop_);
    keeper_->start(std::chrono::hours(1), [] {});
    thread_ = std::thread([this] { loop_.run(); });
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    loop_.post([this] { loop_.stop(); });
    thread_.join();
  }

  // Waits until the server has handled all pending events.
  void turn() {
    std::promise<void> done;
    loop_.post([&] { done.set_value(); });
    done.get_future().wait();
  }

  Question question(const std::string& target = "/") const {
    Question asked;
    asked.method = "GET";
    asked.base = "http://127.0.0.1:" + std::to_string(server_->port());
    asked.target = target;
    return asked;
  }

  io::Loop loop_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<io::Timer> keeper_;
  std::thread thread_;
};

TEST_F(NetWebTest, AsksAndKeepsTheConnection) {
  std::string heard;
  serve([&](const std::string& request) {
    heard = request;
    return Server::Say{http_ok("yes")};
  });
  const auto web = open_web({}).value();
  for (int i = 0; i < 3; ++i) {
    Question asked = question("/b?c");
    asked.base += "/api/v1/";
    asked.fields = {{"authorization", "Bearer k"}};
    const Reply reply = web->ask(asked);
    ASSERT_TRUE(reply.answer) << reply.answer.error().message;
    EXPECT_EQ(reply.answer->body, "yes");
    EXPECT_TRUE(reply.sent);
  }
  EXPECT_EQ(server_->accepted(), 1);
  EXPECT_TRUE(heard.starts_with("GET /api/v1/b?c HTTP/1.1\r\n")) << heard;
  EXPECT_NE(heard.find("\r\nauthorization: Bearer k\r\nUser-Agent: lockstep/"), std::string::npos);
  EXPECT_GT(web->now_ms(), 1'700'000'000'000);
}

// A server that closed a kept connection has not received the next question.
TEST_F(NetWebTest, WhatTheServerClosedIsNotUsedAgain) {
  serve([](const std::string&) { return Server::Say{http_ok("yes"), true}; });
  const auto web = open_web({}).value();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(web->ask(question()).answer);
    turn();
  }
  EXPECT_EQ(server_->accepted(), 5);
}

TEST_F(NetWebTest, AtOnce) {
  // The server answers only once all clients have asked.
  std::vector<std::string> waiting;
  serve([&](const std::string& request) {
    waiting.push_back(request);
    if (waiting.size() < 8) return Server::Say{};
    loop_.post([&] { server_->say(http_ok("yes")); });
    return Server::Say{};
  });
  const auto web = open_web({}).value();
  std::atomic<int> answered = 0;
  std::vector<std::function<void(Web&)>> jobs(8, [&](Web& own) {
    EXPECT_NE(&own, web.get());
    if (own.ask(question()).answer) ++answered;
  });
  web->at_once(jobs);
  EXPECT_EQ(answered, 8);
  jobs.assign(200, [&](Web&) { ++answered; });
  web->at_once(jobs);
  EXPECT_EQ(answered, 208);
  web->at_once({});
}

TEST_F(NetWebTest, TheUserMayStopIt) {
  io::Pipe stop = io::make_pipe().value();
  serve([&](const std::string&) {
    stop.write.reset();  // the other end is readable
    return Server::Say{};
  });
  const auto web = open_web({.stop_fd = stop.read.get()}).value();
  Question asked = question();
  asked.shown = "RunInstances in us-east-1";
  asked.timeout = std::chrono::seconds(60);
  const Reply reply = web->ask(asked);
  turn();  // from here on `stop` belongs to this thread
  ASSERT_FALSE(reply.answer);
  EXPECT_EQ(code_of(reply.answer), Errc::canceled);
  EXPECT_EQ(reply.answer.error().message, "RunInstances in us-east-1: stopped");
  EXPECT_TRUE(reply.sent);
  const Reply again = web->ask(asked);
  EXPECT_EQ(code_of(again.answer), Errc::canceled);
  EXPECT_FALSE(again.sent);
  EXPECT_EQ(code_of(web->pause(std::chrono::hours(1))), Errc::canceled);
}

TEST(NetWeb, WhatIsNotAsked) {
  const auto web = open_web({}).value();
  const auto why = [&](const std::string& base, const std::string& value = "v") {
    Question question;
    question.base = base;
    question.fields = {{"authorization", value}};
    question.shown = "it";
    const Reply reply = web->ask(question);
    EXPECT_FALSE(reply.sent);
    return reply.answer ? "fine" : reply.answer.error().message;
  };
  EXPECT_EQ(why("http://ec2.example"),
            "it: 'ec2.example' is plain http, which would show keys to the network");
  EXPECT_EQ(why("http://128.0.0.1"),
            "it: '128.0.0.1' is plain http, which would show keys to the network");
  EXPECT_EQ(why("ftp://a"), "it: the address must be an http:// or https:// URL");
  EXPECT_EQ(why("https://a.example", "secret\r\nx: y"),
            "it: the value for the header 'authorization' has a line break or another control "
            "character in it");
}

}  // namespace
}  // namespace lockstep::cloud
