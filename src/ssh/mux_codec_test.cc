#include "ssh/mux_codec.h"

#include <gtest/gtest.h>

namespace lockstep::ssh::mux {
namespace {

using namespace std::string_literals;

TEST(MuxCodec, WhatIsSentIsAsOpenSshWritesIt) {
  EXPECT_EQ(hello(), "\0\0\0\x08\0\0\0\x01\0\0\0\x04"s);
  EXPECT_EQ(new_session(7, "ls"),
            "\0\0\0\x2a\x10\0\0\x02\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
            "\xff\xff\xff\xff\0\0\0\0\0\0\0\x02ls"s);
  EXPECT_EQ(new_forward(7, "h", 258),
            "\0\0\0\x15\x10\0\0\x08\0\0\0\x07\0\0\0\0\0\0\0\x01h\0\0\x01\x02"s);
}

TEST(MuxCodec, TheMastersMessagesAreRead) {
  const std::string stream = "\0\0\0\x08\0\0\0\x01\0\0\0\x04"s +               // hello, version 4
                             "\0\0\0\x0c\x80\0\0\x06\0\0\0\x07\0\0\0\x02"s +   // opened, session 2
                             "\0\0\0\x08\x80\0\0\x08\0\0\0\x02"s +             // no terminal
                             "\0\0\0\x0c\x80\0\0\x04\0\0\0\x02\0\0\0\x47"s +   // exit 71
                             "\0\0\0\x0e\x80\0\0\x03\0\0\0\x07\0\0\0\x02no"s;  // refused
  std::string_view rest = stream;
  bool broken = false;
  EXPECT_EQ(std::get<Hello>(*take_message(rest, broken)).version, 4U);
  EXPECT_EQ(std::get<Opened>(*take_message(rest, broken)).session, 2U);
  EXPECT_TRUE(std::holds_alternative<Other>(*take_message(rest, broken)));
  EXPECT_EQ(std::get<Exited>(*take_message(rest, broken)).code, 71U);
  EXPECT_EQ(std::get<Refused>(*take_message(rest, broken)).why, "no");
  EXPECT_TRUE(rest.empty());
  EXPECT_FALSE(broken);
}

TEST(MuxCodec, APartIsWaitedForAndNonsenseIsNot) {
  const std::string whole = "\0\0\0\x08\0\0\0\x01\0\0\0\x04"s;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::string_view part = std::string_view(whole).substr(0, size);
    bool broken = false;
    EXPECT_FALSE(take_message(part, broken));
    EXPECT_FALSE(broken) << size;
  }
  for (const std::string& bytes :
       {"\0\0\0\x03\0\0\0"s, "\0\x10\0\0\0\0\0\x01"s, "\0\0\0\x04\0\0\0\x01"s,
        "\0\0\0\x0c\x80\0\0\x03\0\0\0\x07\0\0\0\x09"s}) {
    std::string_view rest = bytes;
    bool broken = false;
    EXPECT_FALSE(take_message(rest, broken));
    EXPECT_TRUE(broken);
  }
}

}  // namespace
}  // namespace lockstep::ssh::mux
