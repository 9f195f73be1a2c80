#include "rendezvous/news_board.h"

#include "rendezvous/key_value_testing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous {
namespace {

using namespace std::chrono_literals;

class NewsBoardTest : public testing::Test {
 protected:
  void open(int nodes, const std::vector<bool>& ours) {
    for (int rank = 0; rank < nodes; ++rank) {
      keys_.push_back(std::make_unique<FakeKeys>(store_));
      boards_.push_back(std::make_unique<NewsBoard>(
          loop_, *keys_.back(), "p/", rank, ours, [this, rank](int from, const std::string& text) {
            heard_ += std::to_string(from) + ">" + std::to_string(rank) + " " + text + "\n";
          }));
    }
  }
  // Lets the boards look once more.
  void pass() {
    io::Timer timer(loop_);
    int turns = 0;
    const std::function<void()> turn = [&] {
      store_.run();
      if (++turns == 12) return loop_.stop();
      timer.start(100ms, turn);
    };
    timer.start(0ms, turn);
    loop_.run();
  }
  std::string heard() { return std::exchange(heard_, {}); }

  io::Loop loop_;
  FakeStore store_;
  std::vector<std::unique_ptr<FakeKeys>> keys_;
  std::vector<std::unique_ptr<NewsBoard>> boards_;
  std::string heard_;
};

TEST_F(NewsBoardTest, NodeZeroSpeaksToAllAndAllSpeakToNodeZero) {
  open(3, {true, true, true});
  boards_[0]->send("a");
  boards_[1]->send("b");
  boards_[2]->send("c");
  pass();
  const std::string first = heard();
  for (const char* line : {"1>0 b\n", "2>0 c\n", "0>1 a\n", "0>2 a\n"})
    EXPECT_NE(first.find(line), std::string::npos) << first;
  EXPECT_EQ(first.size(), 4 * 6U) << "each once";
  boards_[1]->send("b");
  pass();
  EXPECT_EQ(heard(), "1>0 b\n") << "equal news are news";
}

TEST_F(NewsBoardTest, TorchrunsNodesAreNotAskedAndForeignValuesAreDropped) {
  open(2, {true, false});
  boards_[1]->send("b");
  store_.values["p/lockstep/news/0"] = "no number";
  boards_[0]->send("a");
  store_.values["p/lockstep/news/1"] = "1 x";
  pass();
  EXPECT_EQ(heard(), "0>1 a\n");
}

TEST_F(NewsBoardTest, WithoutNewsThereIsNoRequest) {
  open(2, {true, true});
  pass();
  EXPECT_TRUE(store_.values.empty());
}

}  // namespace
}  // namespace lockstep::rendezvous
