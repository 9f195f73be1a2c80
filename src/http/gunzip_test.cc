#include "http/gunzip.h"

#include <gtest/gtest.h>

#include <zlib.h>

namespace lockstep::http {
namespace {

std::string packed(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string why(const Result<std::string>& text) {
  return text ? "fine" : text.error().message;
}

TEST(Gunzip, TextsComeBack) {
  EXPECT_EQ(gunzip(packed(""), 10).value(), "");
  std::string text;
  for (int i = 0; i < 50'000; ++i)
    text += std::to_string(i * 7919);
  EXPECT_EQ(gunzip(packed(text), text.size()).value(), text);
  EXPECT_EQ(gunzip(packed("one") + packed("two"), 100).value(), "onetwo");
}

TEST(Gunzip, WhatIsNoneIsCorrupt) {
  const std::string whole = packed("a text that is long enough to be cut somewhere");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(gunzip(whole.substr(0, size), 1000)) << size;
  EXPECT_EQ(why(gunzip(whole.substr(0, 20), 1000)), "the packed answer is cut short");
  EXPECT_EQ(why(gunzip("{\"plain\": 1}", 1000)), "the packed answer is not gzip");
  EXPECT_EQ(why(gunzip(whole + "more", 1000)), "the packed answer is not gzip");
  std::string wrong = whole;
  wrong[wrong.size() - 6] ^= 1;  // of the checksum
  EXPECT_EQ(why(gunzip(wrong, 1000)), "the packed answer is not gzip");
}

TEST(Gunzip, TheStartNeedsOnlyAPart) {
  std::string text;
  for (int i = 0; i < 50'000; ++i)
    text += std::to_string(i * 7919);
  const std::string whole = packed(text);
  EXPECT_EQ(gunzip_start(whole, 20'000), text.substr(0, 20'000));
  const std::string part = gunzip_start(whole.substr(0, 5'000), 100'000);
  EXPECT_GT(part.size(), 5'000U);
  EXPECT_EQ(part, text.substr(0, part.size()));
  EXPECT_EQ(gunzip_start(packed("one"), 100), "one");
  EXPECT_EQ(gunzip_start("{\"plain\": 1}", 100), "");
  EXPECT_EQ(gunzip_start("", 100), "");
}

TEST(Gunzip, IsBounded) {
  const std::string bomb = packed(std::string(100 << 20, '\0'));
  ASSERT_LT(bomb.size(), 200U << 10);
  EXPECT_EQ(why(gunzip(bomb, 1 << 20)), "the answer unpacks to more than 1048576 bytes");
  EXPECT_EQ(why(gunzip(bomb, 1000)), "the answer unpacks to more than 1000 bytes");
}

}  // namespace
}  // namespace lockstep::http
