#include "peer/meeting.h"

#include "peer/length.h"

#include <gtest/gtest.h>

namespace lockstep::peer {
namespace {

TEST(Meeting, ComesBackAsItWas) {
  const Meeting meeting{.destination = "project",
                        .owner = {"laptop", "/home/me/project"},
                        .key = std::string(kKeyBytes, '\0'),
                        .addresses = {"10.0.0.1", "fd00::1"},
                        .port = 40000};
  const std::string bytes = encode_meeting(meeting);
  const auto size = length_in(bytes.substr(0, kLengthBytes), kMostMeeting);
  ASSERT_TRUE(size);
  const std::string body = bytes.substr(kLengthBytes);
  EXPECT_EQ(*size, body.size());
  const auto read = decode_meeting(body).value();
  EXPECT_EQ(read.destination, meeting.destination);
  EXPECT_EQ(read.owner, meeting.owner);
  EXPECT_EQ(read.key, meeting.key);
  EXPECT_EQ(read.addresses, meeting.addresses);
  EXPECT_EQ(read.port, meeting.port);
  for (std::size_t cut = 0; cut < body.size(); ++cut)
    EXPECT_FALSE(decode_meeting(body.substr(0, cut))) << cut;
  EXPECT_FALSE(decode_meeting(body + "x"));
}

TEST(Meeting, IsBounded) {
  EXPECT_FALSE(length_in("\xFF\xFF\xFF\xFF", kMostMeeting));
  EXPECT_FALSE(length_in("abc", kMostMeeting));
  Meeting meeting{.key = std::string(kKeyBytes, 'k')};
  const auto body = [&] { return encode_meeting(meeting).substr(kLengthBytes); };
  EXPECT_TRUE(decode_meeting(body()));
  meeting.addresses.resize(kMostAddresses + 1);
  EXPECT_FALSE(decode_meeting(body()));
  meeting.addresses.clear();
  meeting.key.pop_back();  // a short key would be easier to guess
  EXPECT_FALSE(decode_meeting(body()));
}

TEST(Answers, ComeBackAsTheyWere) {
  const auto listening =
      std::get<Listening>(*parse_answer(print_answer(Listening{{"10.0.0.1", "::1"}, 40000})));
  EXPECT_EQ(listening.addresses, (std::vector<std::string>{"10.0.0.1", "::1"}));
  EXPECT_EQ(listening.port, 40000);
  EXPECT_EQ(std::get<Connected>(*parse_answer(print_answer(Connected{"::1"}))).address, "::1");
  EXPECT_EQ(std::get<Progress>(*parse_answer(print_answer(Progress{7}))).bytes, 7U);
  const auto done = std::get<Done>(*parse_answer(print_answer(Done{1, 2, 3})));
  EXPECT_EQ(done.files, 1U);
  EXPECT_EQ(done.bytes, 2U);
  EXPECT_EQ(done.missing, 3U);
  EXPECT_EQ(std::get<Trouble>(*parse_answer(print_answer(Trouble{"no"}))).why, "no");
}

TEST(Answers, NonsenseIsNone) {
  for (const char* line :
       {"", "x", "[]", "{}", R"({"bytes":-1})", R"({"bytes":1,"error":"x"})", R"({"connected":1})",
        R"({"listening":{"port":0,"addresses":[]}})",
        R"({"listening":{"port":70000,"addresses":[]}})", R"({"listening":{"port":1}})",
        R"({"done":{"files":1,"bytes":2}})", R"({"done":3})", R"({"other":{}})"})
    EXPECT_FALSE(parse_answer(line)) << line;
  EXPECT_EQ(std::get<Trouble>(*parse_answer("{\"error\":\"a\\nb\\u001b\"}")).why.find('\x1b'),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::peer
