#include "http/server.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lockstep::http {
namespace {

using std::chrono::milliseconds;

class HttpServer : public testing::Test {
 protected:
  void start(ServerLimits limits = {}, const std::string& host = "127.0.0.1") {
    Handlers handlers;
    handlers["/health"] = [](const Request& request) {
      return Response{200, "text/plain", "ok " + request.query};
    };
    handlers["/big"] = [](const Request&) {
      return Response{200, "text/plain", std::string(8 << 20, 'x')};
    };
    handlers["/live"] = [](const Request&) { return Response{.body = "begin;", .goes_on = true}; };
    auto server = Server::listen(loop_, host, 0, std::move(handlers), limits);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  io::Fd connect_to_server() const {
    io::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(fcntl(fd.get(), F_SETFL, O_NONBLOCK), 0);
    return fd;
  }

  void say(const io::Fd& fd, std::string_view bytes) const {
    ASSERT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // Runs the loop until the peer closes. Returns "<reset>" or "<time>" on failure.
  std::string hear(const io::Fd& fd) {
    std::string text;
    const auto deadline = io::Clock::now() + std::chrono::seconds(10);
    char chunk[65536];
    while (io::Clock::now() < deadline) {
      loop_.run_once();
      const ssize_t got = recv(fd.get(), chunk, sizeof chunk, 0);
      if (got == 0) return text;
      if (got > 0) text.append(chunk, static_cast<std::size_t>(got));
      if (got < 0 && errno != EAGAIN) return text + "<reset>";
      if (got < 0) usleep(200);
    }
    return text + "<time>";
  }

  std::string ask(std::string_view request) {
    const io::Fd fd = connect_to_server();
    say(fd, request);
    return hear(fd);
  }

  io::Fd view() {
    io::Fd fd = connect_to_server();
    say(fd, "GET /live HTTP/1.1\r\n\r\n");
    const std::size_t before = server_->viewers();
    until([&] { return server_->viewers() > before; });
    return fd;
  }

  void until(const std::function<bool()>& fact) {
    const auto deadline = io::Clock::now() + std::chrono::seconds(10);
    while (!fact() && io::Clock::now() < deadline) {
      loop_.run_once();
      usleep(200);
    }
    ASSERT_TRUE(fact());
  }

  io::Loop loop_;
  std::unique_ptr<Server> server_;
};

TEST_F(HttpServer, AnswersAndCloses) {
  start();
  const std::string text = ask("GET /health?x HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n")) << text;
  EXPECT_TRUE(text.ends_with("\r\n\r\nok x")) << text;
  EXPECT_TRUE(ask("HEAD /health HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
  EXPECT_TRUE(ask("GET /none HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(ask("garbage\r\n\r\n").starts_with("HTTP/1.1 400 "));
}

TEST_F(HttpServer, UnreadBodyDoesNotLoseTheAnswer) {
  start();
  const std::string body(100000, 'b');
  const std::string text = ask("POST /health HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + body);
  EXPECT_TRUE(text.starts_with("HTTP/1.1 405 ")) << text;
  EXPECT_EQ(text.find("<reset>"), std::string::npos);
}

TEST_F(HttpServer, RequestInPieces) {
  start();
  const io::Fd fd = connect_to_server();
  for (const char c : std::string_view("GET /health HTTP/1.1\r\n\r\n")) {
    say(fd, {&c, 1});
    loop_.run_once();
  }
  EXPECT_TRUE(hear(fd).starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServer, LargeAnswerArrivesWhole) {
  start();
  const std::string text = ask("GET /big HTTP/1.1\r\n\r\n");
  EXPECT_EQ(text.size() - text.find("\r\n\r\n") - 4, std::size_t{8 << 20});
}

// Only the server's timeout ends these two: one sends no request, the other does not read.
TEST_F(HttpServer, SilentPeersAreDropped) {
  start({.connections = 64, .timeout = milliseconds(50)});
  const io::Fd silent = connect_to_server();
  const io::Fd deaf = connect_to_server();
  say(deaf, "GET /big HTTP/1.1\r\n\r\n");
  EXPECT_EQ(hear(silent), "");
  until([this] { return server_->connections() == 0; });
  const std::string begun = hear(deaf);
  EXPECT_TRUE(begun.starts_with("HTTP/1.1 200 OK\r\n")) << begun.substr(0, 100);
  EXPECT_LT(begun.size(), std::size_t{8 << 20});
}

TEST_F(HttpServer, CrowdCannotShutOutTheNext) {
  start({.connections = 4});
  std::vector<io::Fd> crowd;
  crowd.reserve(20);
  for (int i = 0; i < 20; ++i)
    crowd.push_back(connect_to_server());
  until([this] { return server_->connections() == 4; });
  EXPECT_TRUE(ask("GET /health HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServer, PeerThatLeavesIsForgotten) {
  start();
  {
    const io::Fd fd = connect_to_server();
    say(fd, "GET /he");
    until([this] { return server_->connections() == 1; });
  }
  until([this] { return server_->connections() == 0; });
}

TEST_F(HttpServer, MayBeDestroyedWithOpenConnections) {
  start();
  const io::Fd fd = connect_to_server();
  until([this] { return server_->connections() == 1; });
  server_.reset();
  EXPECT_EQ(hear(fd), "");
}

TEST_F(HttpServer, ViewersGetWhatIsSentUntilTheServerCloses) {
  start({.timeout = milliseconds(50), .viewers = 2});
  const io::Fd first = view();
  usleep(60'000);  // the time limit of an exchange does not end a viewer
  const io::Fd second = view();
  server_->send_to_viewers("more;");
  EXPECT_TRUE(ask("GET /live HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503 "));
  EXPECT_TRUE(ask("HEAD /live HTTP/1.1\r\n\r\n").ends_with("close\r\n\r\n"));
  server_->send_to_viewers("last");
  server_.reset();
  EXPECT_TRUE(hear(first).ends_with("\r\n\r\nbegin;more;last"));
  EXPECT_TRUE(hear(second).ends_with("\r\n\r\nbegin;more;last"));
}

TEST_F(HttpServer, ViewerThatLeavesIsForgotten) {
  start({.viewers = 1});
  { const io::Fd fd = view(); }
  until([this] { return server_->viewers() == 0; });
}

TEST_F(HttpServer, ViewerThatDoesNotReadIsDropped) {
  start({.viewers = 2, .viewer_bytes = 1 << 20});
  const io::Fd deaf = view();
  const io::Fd reader = view();
  const std::string chunk(64 << 10, 'x');
  char into[65536];
  for (int i = 0; i < 1000 && server_->viewers() == 2; ++i) {
    server_->send_to_viewers(chunk);
    loop_.run_once();
    while (recv(reader.get(), into, sizeof into, 0) > 0)
      loop_.run_once();
  }
  EXPECT_EQ(server_->viewers(), 1U);
}

TEST_F(HttpServer, ViewerThatStopsReadingHasALimitedTime) {
  start({.timeout = milliseconds(50), .viewers = 1, .viewer_bytes = 64 << 20});
  const io::Fd deaf = view();
  server_->send_to_viewers(std::string(32 << 20, 'x'));
  until([this] { return server_->viewers() == 0; });
}

TEST_F(HttpServer, EveryInterface) {
  start({}, "");
  EXPECT_TRUE(ask("GET /health HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServer, SaysWhyItCannotListen) {
  start();
  const auto taken = Server::listen(loop_, "127.0.0.1", server_->port(), {});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().sys, EADDRINUSE);
  const auto nowhere = Server::listen(loop_, "192.0.2.1", 0, {});  // not an address of this machine
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().sys, EADDRNOTAVAIL);
}

}  // namespace
}  // namespace lockstep::http
