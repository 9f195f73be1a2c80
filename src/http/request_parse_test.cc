#include "http/request_parse.h"

#include <gtest/gtest.h>

namespace lockstep::http {
namespace {

using State = RequestParser::State;

int status_of(std::string_view bytes) {
  RequestParser parser;
  const State state = parser.feed(bytes);
  if (state == State::more) return 0;
  return state == State::complete ? 200 : parser.error_status();
}

TEST(RequestParse, Complete) {
  RequestParser parser;
  EXPECT_EQ(parser.feed("GET /metrics?a=%20b HTTP/1.1\r\nHost: x\r\nX-Y:\tz\r\n\r\nbody"),
            State::complete);
  EXPECT_EQ(parser.request().method, "GET");
  EXPECT_EQ(parser.request().path, "/metrics");
  EXPECT_EQ(parser.request().query, "a=%20b");
}

TEST(RequestParse, ByteByByteIsTheSame) {
  RequestParser parser;
  const std::string text = "\r\nHEAD /h%65alth HTTP/1.0\nHost: x\r\n\n";
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    ASSERT_EQ(parser.feed({&text[i], 1}), State::more) << i;
  EXPECT_EQ(parser.feed("\n"), State::complete);
  EXPECT_EQ(parser.request().path, "/health");
}

TEST(RequestParse, AbsoluteForm) {
  RequestParser parser;
  EXPECT_EQ(parser.feed("GET http://n:1/a HTTP/1.1\r\n\r\n"), State::complete);
  EXPECT_EQ(parser.request().path, "/a");
  EXPECT_EQ(status_of("GET http://n:1 HTTP/1.1\r\n\r\n"), 200);
}

TEST(RequestParse, Refused) {
  EXPECT_EQ(status_of("\x16\x03\x01 tls hello\n\n"), 400);
  EXPECT_EQ(status_of("GET /\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET  HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("G@T / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET x HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /a b HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /%4 HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /%zz HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/11\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string_view("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 24)), 400);
}

TEST(RequestParse, Bounded) {
  const std::string long_text(RequestParser::kLimit * 4, 'a');
  EXPECT_EQ(status_of("GET /" + long_text), 414);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: " + long_text), 431);
  RequestParser parser;
  for (int i = 0; i < 100000; ++i)
    parser.feed("\n");
  EXPECT_EQ(parser.feed("GET / HTTP/1.1\r\n\r\n"), State::complete);
  EXPECT_EQ(status_of(std::string(RequestParser::kLimit * 2, '\n') + "GET / HTTP/1.1\r\n\r\n"),
            200);
  const std::string head = "GET / HTTP/1.1\r\nA: ";
  const std::string fill(RequestParser::kLimit - head.size() - 4, 'a');
  EXPECT_EQ(status_of(head + fill + "\r\n\r\n"), 200);
  EXPECT_EQ(status_of(head + fill + "a\r\n\r\n"), 431);
}

TEST(RequestParse, FieldsAreKept) {
  RequestParser parser;
  parser.feed("GET / HTTP/1.1\r\nHOST:  a:80 \r\nCookie: x=1\r\nhost: b\r\n\r\n");
  ASSERT_EQ(parser.state(), State::complete);
  EXPECT_EQ(parser.request().field("cookie"), "x=1");
  EXPECT_EQ(parser.request().field("host"), "a:80, b");
  EXPECT_EQ(parser.request().field("origin"), "");
}

TEST(RequestParse, Response) {
  EXPECT_EQ(print_response({200, "text/plain", "hi\n"}, false),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\nhi\n");
  EXPECT_TRUE(print_response({200, "text/plain", "hi\n"}, true).ends_with("close\r\n\r\n"));
  EXPECT_NE(print_response({405, "text/plain", ""}, false).find("\r\nAllow: GET, HEAD\r\n"),
            std::string::npos);
  EXPECT_EQ(print_response({303, "text/plain", "", {{"Location", "/"}}}, false),
            "HTTP/1.1 303 See Other\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\nLocation: /\r\n\r\n");
}

TEST(RequestParse, ResponseThatGoesOnHasNoLength) {
  const std::string text =
      print_response({.content_type = "text/event-stream", .body = "a", .goes_on = true}, false);
  EXPECT_EQ(text.find("Content-Length"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\n\r\na"));
}

}  // namespace
}  // namespace lockstep::http
