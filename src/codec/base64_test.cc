#include "codec/base64.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::codec {
namespace {

TEST(Base64, VectorsOfTheRfc) {
  const std::pair<std::string, std::string> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"},
                                                         {"\xfb\xff", "+/8="}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode(text).value(), bytes);
  }
}

TEST(Base64, ForUrls) {
  EXPECT_EQ(base64url_encode("\xfb\xff"), "-_8");
  EXPECT_EQ(base64url_encode("foob"), "Zm9vYg");
  EXPECT_EQ(base64url_encode(""), "");
}

TEST(Base64, AllBytesComeBack) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    bytes += static_cast<char>(i * 7);
    ASSERT_EQ(base64_decode(base64_encode(bytes)).value(), bytes);
  }
}

TEST(Base64, WhatNoEncoderWritesIsCorrupt) {
  for (const char* text : {"Zg", "Zg=", "Zg==\n", "Z===", "====", "Zg==Zg==", "Zm9-", "Zm 9",
                           "Zh==", "Zm9=", "=m9v", "Zm9v\xc3\xa4__"}) {
    const auto decoded = base64_decode(text);
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(code_of(decoded), Errc::corrupt) << text;
  }
  EXPECT_EQ(base64_decode("Zm9vZm!v").error().message, "not a base64 character at offset 6");
}

}  // namespace
}  // namespace lockstep::codec
