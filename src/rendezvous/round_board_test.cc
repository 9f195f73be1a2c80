#include "rendezvous/round_board.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

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

// Answers at the test's command and in the test's order.
class SlowKeys : public KeyValue {
 public:
  void set(std::string_view, std::string_view, Done<void>) override {}
  void multi_set(const Entries&, Done<void>) override {}
  void add(std::string_view, std::int64_t, Done<std::int64_t>) override {}
  void put_if_absent(std::string_view, std::string_view, Done<std::string> done) override {
    answer_put = std::move(done);
  }
  void probe(std::string_view, Done<std::optional<std::string>> done) override {
    answer_probe = std::move(done);
  }
  void multi_get(const Keys&, Ms, Done<Keys>) override {}
  void wait(const Keys&, Ms, Done<void> done) override { answer_wait = std::move(done); }
  void forget_waits() override {}
  std::unique_ptr<Watch> watch(std::string_view, std::function<void(std::string)>) override {
    return nullptr;
  }

  Done<std::string> answer_put;
  Done<std::optional<std::string>> answer_probe;
  Done<void> answer_wait;
};

// Two nodes fail at once. Both have told, and the store decides on the order before either node
// knows.
TEST(RoundBoard, ReportsAreOrderedByTheFailureThatTheStoreHasFirst) {
  io::Loop loop;
  SlowKeys keys;
  RoundBoard board(loop, keys, "round/", 0, {true, true});
  board.on_failure([](const FailureRecord&) {});
  board.tell({0, "rank 0 failed", true, 0});
  std::vector<int> order;
  board.exchange_reports({"a", 0, "[]"}, std::chrono::seconds(60),
                         [&](const std::vector<NodeReport>& reports) {
                           for (const auto& report : reports)
                             order.push_back(report.group_rank);
                         });
  keys.answer_wait({});
  EXPECT_FALSE(keys.answer_probe) << "it is not known yet who was first";
  keys.answer_put(encode_failure({1, "rank 1 failed", true, 0}));
  ASSERT_TRUE(keys.answer_probe);
  keys.answer_probe(std::optional<std::string>(R"({"host": "b", "report": "[]"})"));
  EXPECT_EQ(order, (std::vector<int>{1, 0}));
}

}  // namespace
}  // namespace lockstep::rendezvous
