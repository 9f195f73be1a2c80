#include "jobs/rented/client_log.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::rented {
namespace {

using link::Stream;

TEST(ClientLog, AClientGetsOnlyWhatItHasNotSeen) {
  ClientLog log(6);
  EXPECT_EQ(log.encode(0, Stream::out, "one\n"), "");
  EXPECT_EQ(log.encode(4, Stream::err, "two\n"), "\x1eo\n");
  EXPECT_EQ(log.encode(8, Stream::out, "three\n"), "\x1dthree\n");
  EXPECT_FALSE(log.take_gap());
}

TEST(ClientLog, ADroppedMiddleIsSaidAndCounts) {
  ClientLog log(4);
  EXPECT_EQ(log.encode(0, Stream::out, "one\n"), "");
  const std::string text = log.encode(100, Stream::out, "nine\n");
  EXPECT_TRUE(log.take_gap());
  EXPECT_FALSE(log.take_gap());
  StreamDecoder client;
  client.begin(4);
  client.decode(text, [](Stream, std::string_view bytes) { EXPECT_EQ(bytes, "nine\n"); });
  EXPECT_EQ(client.at(), 105U) << "the client asks for the rest";
  ClientLog next(client.at());
  EXPECT_EQ(next.encode(100, Stream::out, "nine\nten\n"), "\x1dten\n");
  EXPECT_FALSE(next.take_gap());
}

}  // namespace
}  // namespace lockstep::jobs::rented
