#include "http/response_parse.h"

#include <gtest/gtest.h>

namespace lockstep::http {
namespace {

using Answered = ResponseParser::State;

struct Outcome {
  Answered state = Answered::head;
  int status = 0;
  std::string body;
  std::string error;
  std::size_t taken = 0;
  bool keep_alive = false;
  bool operator==(const Outcome&) const = default;
};

Outcome parse(std::string_view bytes, std::size_t step, bool eof) {
  ResponseParser parser;
  Outcome outcome;
  for (std::size_t at = 0; at < bytes.size(); at += step)
    outcome.taken += parser.feed(bytes.substr(at, step), outcome.body);
  if (eof) parser.end();
  outcome.state = parser.state();
  outcome.status = parser.head().status;
  outcome.error = parser.error();
  outcome.keep_alive = parser.keep_alive();
  return outcome;
}

// Parses the bytes as a whole and one by one. Both must have the same result.
Outcome parse(std::string_view bytes, bool eof = false) {
  Outcome whole = parse(bytes, bytes.size() + 1, eof);
  const Outcome pieces = parse(bytes, 1, eof);
  EXPECT_EQ(whole.state, pieces.state);
  EXPECT_EQ(whole.body, pieces.body);
  EXPECT_EQ(whole.error, pieces.error);
  return whole;
}

TEST(ResponseParser, Length) {
  const auto got = parse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1");
  EXPECT_EQ(got.state, Answered::complete);
  EXPECT_EQ(got.body, "hello");
  EXPECT_TRUE(got.keep_alive);
  EXPECT_EQ(got.taken,
            std::string_view("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").size());
}

TEST(ResponseParser, Chunks) {
  const auto got = parse(
      "HTTP/1.1 201\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n");
  EXPECT_EQ(got.state, Answered::complete);
  EXPECT_EQ(got.status, 201);
  EXPECT_EQ(got.body, "abc0123456789");
  EXPECT_TRUE(got.keep_alive);
}

TEST(ResponseParser, UntilTheEnd) {
  EXPECT_EQ(parse("HTTP/1.0 200 OK\n\nall of it").state, Answered::body);
  const auto got = parse("HTTP/1.0 200 OK\n\nall of it", true);
  EXPECT_EQ(got.state, Answered::complete);
  EXPECT_EQ(got.body, "all of it");
  EXPECT_FALSE(got.keep_alive);
}

TEST(ResponseParser, NoBody) {
  EXPECT_EQ(parse("HTTP/1.1 204 No Content\r\n\r\n").state, Answered::complete);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").state, Answered::complete);
  EXPECT_EQ(parse("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 304 x\r\n\r\n").status, 304);
  ResponseParser head(true);
  std::string body;
  head.feed("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", body);
  EXPECT_EQ(head.state(), Answered::complete);
}

TEST(ResponseParser, Fields) {
  ResponseParser parser;
  std::string body;
  parser.feed(
      "HTTP/1.1 200 OK\r\nX-Etcd-Index:  35 \r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
      body);
  EXPECT_EQ(parser.head().field("x-etcd-index"), "35");
  EXPECT_EQ(parser.head().field("none"), "");
  EXPECT_FALSE(parser.keep_alive());
}

TEST(ResponseParser, Garbage) {
  EXPECT_EQ(parse("SSH-2.0-OpenSSH\r\n").error, "not an HTTP answer: 'SSH-2.0-OpenSSH'");
  EXPECT_EQ(parse("HTTP/1.1 20x OK\r\n\r\n").state, Answered::bad);
  EXPECT_EQ(parse("HTTP/2.0 200 OK\r\n\r\n").state, Answered::bad);
  EXPECT_EQ(parse("HTTP/1.1 101 Switching\r\n\r\n").state, Answered::bad);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nnothing\r\n\r\n").error, "not a header field: 'nothing'");
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nA: b\x01\r\n\r\n").state, Answered::bad);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n").state, Answered::bad);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n").state,
            Answered::bad);
  EXPECT_EQ(
      parse("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n").state,
      Answered::bad);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n").state, Answered::bad);
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(parse(chunked + "zz\r\n").error, "not a chunk size: 'zz'");
  EXPECT_EQ(parse(chunked + "ffffffffffffffffff\r\n").state, Answered::bad);
  EXPECT_EQ(parse(chunked + "1\r\nab\r\n").error, "a chunk is longer than announced");
}

TEST(ResponseParser, EarlyEnd) {
  EXPECT_EQ(parse("", true).error, "the connection was closed before an answer came");
  for (const char* text : {"HT", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"})
    EXPECT_EQ(parse(text, true).error, "the connection was closed in the middle of the answer");
}

TEST(ResponseParser, Bounds) {
  const std::string start = "HTTP/1.1 200 OK\r\n";
  EXPECT_EQ(parse(start + "A: " + std::string(20'000, 'x')).error, "a line is longer than 16 KiB");
  std::string many = start;
  for (int i = 0; i < 5000; ++i)
    many += "A: bbbbbbbb\r\n";
  EXPECT_EQ(parse(many).error, "the head is larger than 32 KiB");
}

}  // namespace
}  // namespace lockstep::http
