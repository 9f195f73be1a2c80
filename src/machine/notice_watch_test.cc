#include "machine/notice_watch.h"

#include <gtest/gtest.h>

namespace lockstep::machine {
namespace {

TEST(NoticeWatch, SaysWhatWillHappenAndWhen) {
  EXPECT_EQ(action_words(R"({"action":"terminate","time":"2026-11-23T06:00:00Z"})"),
            "terminate 2026-11-23T06:00:00Z");
  EXPECT_EQ(action_words(R"({"action":"stop"})"), "stop");
  EXPECT_EQ(action_words(R"({"action":"a\u001b[2J"})"), "a\\x1b[2J");
  for (const char* text : {"", "[]", "{}", R"({"time":"x"})", "<html>", R"({"action":5})"})
    EXPECT_EQ(action_words(text), "") << text;
}

}  // namespace
}  // namespace lockstep::machine
