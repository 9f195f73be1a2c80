#include "page/page_server.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lockstep::page {
namespace {

class PageServerTest : public testing::Test {
 protected:
  PageServerTest() {
    PageSources sources{
        .rows = [](bool) { return looks::NodeRows{.node = "n0", .state = "training"}; },
        .state = [] { return PageState{.run_id = "r7"}; },
        .why = [](const http::Request& request) { return http::Response{.body = request.query}; },
        .metrics = [](const http::Request&) { return http::Response{.body = "metrics"}; }};
    auto page = PageServer::open(loop_, {.token = "secret-token-0123"}, std::move(sources));
    EXPECT_TRUE(page) << page.error().message;
    page_ = std::move(*page);
    const std::string address = page_->address();
    const std::size_t colon = address.rfind(':');
    port_ = static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1)));
  }

  io::Fd ask_only(const std::string& head) const {
    io::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(fcntl(fd.get(), F_SETFL, O_NONBLOCK), 0);
    const std::string text = head + "\r\n\r\n";
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    return fd;
  }

  // Runs the loop until the text has come or the server has closed.
  std::string hear(const io::Fd& fd, std::string_view until = {}) {
    std::string text;
    char chunk[65536];
    const auto deadline = io::Clock::now() + std::chrono::seconds(10);
    while (io::Clock::now() < deadline) {
      loop_.run_once();
      const ssize_t got = recv(fd.get(), chunk, sizeof chunk, 0);
      if (got == 0) return text;
      if (got > 0) text.append(chunk, static_cast<std::size_t>(got));
      if (!until.empty() && text.find(until) != std::string::npos) return text;
      if (got < 0) usleep(500);
    }
    return text + "<time>";
  }

  std::string ask(const std::string& target, const std::string& more = "") {
    return hear(ask_only("GET " + target + " HTTP/1.1\r\nHost: localhost" + more));
  }

  static std::string cookie() { return "\r\nCookie: lockstep_ee5a6c67=secret-token-0123"; }

  io::Loop loop_;
  std::unique_ptr<PageServer> page_;
  std::uint16_t port_ = 0;
};

TEST_F(PageServerTest, EveryPathNeedsTheToken) {
  for (const char* path : {"/", "/live", "/state", "/history", "/events", "/why", "/metrics"}) {
    EXPECT_TRUE(ask(path).starts_with("HTTP/1.1 403 ")) << path;
    if (path != std::string_view("/live")) {
      EXPECT_TRUE(ask(path, cookie()).starts_with("HTTP/1.1 200 ")) << path;
    }
  }
  EXPECT_EQ(page_->viewers(), 0U);
}

TEST_F(PageServerTest, ThePrintedAddressLeadsToThePage) {
  const std::string address = page_->address();
  const std::string welcome = ask(address.substr(address.find("/?")));
  EXPECT_TRUE(welcome.starts_with("HTTP/1.1 303 ")) << welcome;
  const std::string page = ask("/", cookie());
  EXPECT_NE(page.find("\r\nContent-Security-Policy: default-src 'none';"), std::string::npos);
  EXPECT_NE(page.find("\r\nX-Content-Type-Options: nosniff\r\n"), std::string::npos);
  EXPECT_NE(page.find("\r\nCache-Control: no-store\r\n"), std::string::npos);
}

TEST_F(PageServerTest, ViewersGetTheStateEachSecondAndTheEnd) {
  const io::Fd viewer = ask_only("GET /live HTTP/1.1\r\nHost: localhost" + cookie());
  const std::string first = hear(viewer, "\"state\":\"training\"");
  EXPECT_NE(first.find("text/event-stream"), std::string::npos) << first;
  EXPECT_NE(hear(viewer, "event: state\ndata: {").find("\"ended\":null"), std::string::npos);
  page_->show_end("succeeded");
  EXPECT_NE(hear(viewer, "succeeded").find("\"ended\":\"succeeded\""), std::string::npos);
}

TEST_F(PageServerTest, AnswersQueries) {
  EXPECT_TRUE(ask("/why?rank=3", cookie()).ends_with("\r\n\r\nrank=3"));
  EXPECT_NE(ask("/history?span=86400", cookie()).find("\"width_ms\":60000"), std::string::npos);
  EXPECT_NE(ask("/history?span=x", cookie()).find("\"width_ms\":1000"), std::string::npos);
  EXPECT_TRUE(ask("/../etc/passwd", cookie()).starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(ask("/%2e%2e/state", cookie()).starts_with("HTTP/1.1 404 "));
}

}  // namespace
}  // namespace lockstep::page
