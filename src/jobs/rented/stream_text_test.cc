#include "jobs/rented/stream_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::rented {
namespace {

using link::Stream;
using Runs = std::vector<std::pair<Stream, std::string>>;

// Decodes the text in pieces of this size, and joins runs of one stream.
Runs decoded(const std::string& text, std::size_t piece) {
  Runs runs;
  StreamDecoder decoder;
  for (std::size_t at = 0; at < text.size(); at += piece)
    decoder.decode(std::string_view(text).substr(at, piece),
                   [&](Stream stream, std::string_view bytes) {
                     if (runs.empty() || runs.back().first != stream) runs.emplace_back(stream, "");
                     runs.back().second += bytes;
                   });
  return runs;
}

TEST(StreamText, KeepsTheOrderOfTheStreams) {
  StreamEncoder encoder;
  std::string text = encoder.encode(Stream::err, "rents\n");
  text += encoder.encode(Stream::out, "step 1\n");
  text += encoder.encode(Stream::out, "step 2\n");
  text += encoder.encode(Stream::err, "done\n");
  EXPECT_EQ(text,
            "\x1erents\n\x1dstep 1\nstep 2\n\x1e"
            "done\n")
      << "a mark only where it changes";
  EXPECT_EQ(
      decoded(text, 3),
      (Runs{{Stream::err, "rents\n"}, {Stream::out, "step 1\nstep 2\n"}, {Stream::err, "done\n"}}));
  EXPECT_EQ(plain_text(text), "rents\nstep 1\nstep 2\ndone\n");
}

TEST(StreamText, AFileOfAnOlderVersionIsOutput) {
  EXPECT_EQ(decoded("step 1\n", 100), (Runs{{Stream::out, "step 1\n"}}));
}

TEST(StreamText, ATextSaysItsPlace) {
  StreamEncoder encoder;
  const std::string text = encoder.encode(Stream::out,
                                          "on\x1c"
                                          "7\n") +
                           StreamEncoder::place(12'345'678'901) +
                           encoder.encode(Stream::err, "two\n");
  EXPECT_EQ(plain_text(text),
            "on\x1c"
            "7\ntwo\n");
  for (const std::size_t piece : {1U, 3U, 100U}) {
    StreamDecoder decoder;
    std::vector<std::uint64_t> places;
    for (std::size_t at = 0; at < text.size(); at += piece)
      decoder.decode(std::string_view(text).substr(at, piece), [&](Stream stream, auto) {
        if (stream == Stream::err) places.push_back(decoder.at());
      });
    EXPECT_EQ(places.front(), 12'345'678'901U);
    EXPECT_EQ(decoder.at(), 12'345'678'905U);
  }
}

TEST(StreamText, ATextSaysThatTheCourseIsCanceled) {
  const std::string text = "one" + StreamEncoder::canceled() + "two";
  StreamDecoder decoder;
  std::string plain;
  for (const char byte : text)
    decoder.decode({&byte, 1}, [&](Stream, std::string_view bytes) { plain += bytes; });
  EXPECT_EQ(plain, "onetwo");
  EXPECT_EQ(decoder.take_canceled(), 1);
  EXPECT_EQ(decoder.take_canceled(), 0);
  decoder.decode("\x1c" + std::string(100, '9') + "\n", [](Stream, auto) { FAIL(); });
  EXPECT_EQ(decoder.at(), 6U) << "no place";
}

TEST(StreamText, AnyBytesComeBackInPiecesOfAnySize) {
  std::mt19937 chance(1);
  for (int round = 0; round < 300; ++round) {
    StreamEncoder encoder;
    std::string text;
    Runs given;
    for (int i = 0; i < 8; ++i) {
      const Stream stream = chance() % 2 == 0 ? Stream::out : Stream::err;
      std::string bytes;
      for (unsigned left = chance() % 20; left > 0; --left)
        bytes += static_cast<char>(chance() % 2 == 0 ? 0x1b + chance() % 6 : chance());
      text += encoder.encode(stream, bytes);
      if (bytes.empty()) continue;
      if (given.empty() || given.back().first != stream) given.emplace_back(stream, "");
      given.back().second += bytes;
    }
    for (const std::size_t piece : {1U, 2U, 7U, 1000U})
      EXPECT_EQ(decoded(text, piece), given) << "round " << round;
  }
}

}  // namespace
}  // namespace lockstep::jobs::rented
