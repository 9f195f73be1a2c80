#include "hosts/log_lines.h"

#include <gtest/gtest.h>

namespace lockstep::hosts {
namespace {

TEST(LogLines, ALineIsOneObject) {
  EXPECT_EQ(
      log_line_head("gpus-0", "stdout") + log_line_rest("[rank3]: loss \"0.1\"\n"),
      "{\"node\":\"gpus-0\",\"stream\":\"stdout\",\"rank\":3,\"text\":\"loss \\\"0.1\\\"\"}\n");
}

TEST(LogLines, RankOnlyWhereThePrefixIsWhole) {
  EXPECT_EQ(log_line_rest("[rank12]: \n"), "\"rank\":12,\"text\":\"\"}\n");
  EXPECT_EQ(log_line_rest("[rank]: x\n"), "\"text\":\"[rank]: x\"}\n");
  EXPECT_EQ(log_line_rest("[rank1]:x\n"), "\"text\":\"[rank1]:x\"}\n");
  EXPECT_EQ(log_line_rest("[rank-1]: x\n"), "\"text\":\"[rank-1]: x\"}\n");
  EXPECT_EQ(log_line_rest("[rank99999999999999999999]: x\n"),
            "\"text\":\"[rank99999999999999999999]: x\"}\n");
  EXPECT_EQ(log_line_rest("[rank1]: [rank0]: x\n"), "\"rank\":1,\"text\":\"[rank0]: x\"}\n");
}

TEST(LogLines, EveryByteSurvives) {
  EXPECT_EQ(log_line_rest("a\rb\n"), "\"text\":\"a\\rb\"}\n");
  EXPECT_EQ(log_line_rest("\xff\n"), "\"text\":\"\xef\xbf\xbd\",\"text_base64\":\"/w==\"}\n");
  EXPECT_EQ(log_line_rest("no end"), "\"text\":\"no end\",\"cut\":true}\n");
}

}  // namespace
}  // namespace lockstep::hosts
