// Each pair of ends on this machine, with a folder each, stands for a host.
#include "peer/relay.h"

#include "base/id.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <filesystem>
#include <fstream>

namespace lockstep::peer {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

std::string content(std::size_t bytes, char first) {
  std::string text(bytes, first);
  for (std::size_t i = 0; i < bytes; i += 997)
    text[i] = static_cast<char>(i);
  return text;
}

class RelayTest : public ::testing::Test {
 protected:
  RelayTest() {
    signal(SIGPIPE, SIG_IGN);
    top_ =
        fs::path(::testing::TempDir()) /
        (std::string("relay_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(top_);
    fs::create_directories(top_);
    port_ = io::open_listener("", 0, 1).value().port;
  }
  std::string file(const std::string& name, const std::string& text) const {
    std::string path = (top_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::unique_ptr<RelayGiver> giver(int takers, std::size_t files, const std::vector<int>& ports) {
    auto made = RelayGiver::open(ports, key_, takers, files);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  Result<RelayTaker> taker(const std::vector<int>& ports) const {
    return RelayTaker::open({"127.0.0.1"}, ports, key_, seconds(20));
  }
  static Status take(RelayTaker& taker, std::size_t file, std::uint64_t size, std::string& into) {
    return taker.take(file, size, [&](std::string_view piece) {
      into += piece;
      return Status();
    });
  }

  fs::path top_;
  std::string key_ = random_key(32);
  int port_ = 0;
};

TEST_F(RelayTest, ATreeOfTwoBelowEach) {
  EXPECT_EQ(relay_giver(0), -1);
  for (const int hosts : {1, 2, 3, 4, 5, 6, 7, 100}) {
    std::vector<int> takers(static_cast<std::size_t>(hosts));
    for (int host = 1; host < hosts; ++host)
      ++takers.at(static_cast<std::size_t>(relay_giver(host)));
    for (int host = 0; host < hosts; ++host)
      EXPECT_EQ(relay_takers(host, hosts), takers[static_cast<std::size_t>(host)])
          << host << " of " << hosts;
  }
}

TEST_F(RelayTest, FilesGoOnWhileTheyCome) {
  const std::string one = content(700'000, 'a');
  const std::string two = content(50'000, 'b');
  const auto from = giver(1, 2, {port_});
  ASSERT_TRUE(from->begin(1, file("two", two)));
  from->has(1, two.size());
  auto to = taker({port_});
  ASSERT_TRUE(to) << to.error().message;
  std::string got;
  ASSERT_TRUE(take(*to, 1, two.size(), got));
  EXPECT_EQ(got, two);
  // The first file grows while it is being read.
  std::thread growing([&] {
    const std::string path = file("one", one.substr(0, 300'000));
    ASSERT_TRUE(from->begin(0, path));
    from->has(0, 300'000);
    std::ofstream(path, std::ios::app | std::ios::binary) << one.substr(300'000);
    from->has(0, one.size());
  });
  got.clear();
  EXPECT_TRUE(take(*to, 0, one.size(), got));
  growing.join();
  EXPECT_EQ(got, one);
  to->finish();
  const auto began = std::chrono::steady_clock::now();
  from->finish(seconds(60));
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(30)) << "nobody is waited for";
}

TEST_F(RelayTest, ATakenPortIsPassedOver) {
  const auto other = io::open_listener("", 0, 1).value();
  const auto from = giver(1, 1, {other.port, port_});
  ASSERT_TRUE(from->begin(0, file("x", "abc")));
  from->has(0, 3);
  auto to = taker({port_});
  ASSERT_TRUE(to) << to.error().message;
  std::string got;
  ASSERT_TRUE(take(*to, 0, 3, got));
  EXPECT_EQ(got, "abc");
}

TEST_F(RelayTest, WhoHasNotTheKeyGetsNothing) {
  const auto from = giver(1, 1, {port_});
  ASSERT_TRUE(from->begin(0, file("x", "abc")));
  from->has(0, 3);
  const auto stranger =
      RelayTaker::open({"127.0.0.1"}, {port_}, random_key(32), std::chrono::milliseconds(1));
  EXPECT_FALSE(stranger);
  auto to = taker({port_});
  ASSERT_TRUE(to) << to.error().message;
  std::string got;
  EXPECT_TRUE(take(*to, 0, 3, got));
}

TEST_F(RelayTest, AskingForWhatThereIsNotEndsIt) {
  const auto from = giver(1, 1, {port_});
  auto to = taker({port_});
  ASSERT_TRUE(to) << to.error().message;
  std::string got;
  EXPECT_FALSE(take(*to, 1, 3, got));
}

TEST_F(RelayTest, NobodyWaitsForATakerThatDoesNotCome) {
  const auto from = giver(2, 1, {port_});
  auto to = taker({port_});
  ASSERT_TRUE(to) << to.error().message;
  to->finish();
  from->finish(std::chrono::milliseconds(50));
  EXPECT_FALSE(RelayTaker::open({"127.0.0.1"}, {port_}, key_, std::chrono::milliseconds(1)));
}

// A taker waiting for bytes that never come gets an error.
TEST_F(RelayTest, AGiverThatGivesUp) {
  auto from = giver(1, 1, {port_});
  auto to = taker({port_});
  ASSERT_TRUE(to) << to.error().message;
  std::string got;
  std::thread waiting([&] { EXPECT_FALSE(take(*to, 0, 3, got)); });
  from.reset();
  waiting.join();
}

}  // namespace
}  // namespace lockstep::peer
