#include "rendezvous/round_board.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous {
namespace {

TEST(FailureRecord, ComesBack) {
  const FailureRecord record{3, "rank 7 on a failed (exitcode: 1)", true, 2, true};
  const auto read = decode_failure(encode_failure(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, record);
}

TEST(FailureRecord, SteersNeitherTheTerminalNorTheArithmetic) {
  const auto read = decode_failure(
      R"({"node": 1, "line": "a\u001b[2J\nb", "final": false, "restarts": 1, "gone": 7})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->line, "a\\x1b[2J\\x0ab");
  EXPECT_FALSE(read->gone);
  FailureRecord record{1, std::string(10'000, 'x'), false, 1};
  EXPECT_LT(decode_failure(encode_failure(record))->line.size(), 600U);
}

TEST(FailureRecord, Nonsense) {
  for (const char* text :
       {"", "7", "[]", "{}", R"({"node": -1, "line": "", "final": true, "restarts": 0})",
        R"({"node": 18446744073709551615, "line": "", "final": true, "restarts": 0})",
        R"({"node": 1.0, "line": "", "final": true, "restarts": 0})",
        R"({"node": 1, "line": "", "final": true, "restarts": 2147483647})",
        R"({"node": 1, "line": "", "final": 1, "restarts": 0})",
        R"({"node": 1, "line": [], "final": true, "restarts": 0})"})
    EXPECT_FALSE(decode_failure(text)) << text;
}

}  // namespace
}  // namespace lockstep::rendezvous
