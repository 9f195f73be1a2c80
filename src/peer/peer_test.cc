// Both ends on this machine: a serving process and a taking process.
#include "base/id.h"
#include "io/fd.h"
#include "peer/dial.h"
#include "peer/meeting.h"
#include "peer/serve.h"
#include "peer/take.h"
#include "sync/host_tree.h"
#include "sync/scan.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace lockstep::peer {
namespace {

namespace fs = std::filesystem;

class PeerTest : public ::testing::Test {
 protected:
  PeerTest() {
    const fs::path top =
        fs::path(::testing::TempDir()) /
        (std::string("peer_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(top);
    fs::create_directories(top / "client");
    fs::create_directories(top / "seed");
    fs::create_directories(top / "taker");
    top_ = fs::canonical(top);
    meeting_ = {.destination = "tree", .owner = {"laptop", "/x"}, .key = random_key(kKeyBytes)};
  }
  ~PeerTest() override { stop(); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((top_ / "client" / path).parent_path());
    std::ofstream(top_ / "client" / path) << text;
  }
  sync::HostFolders folders(const std::string& host) const {
    return {(top_ / host).string(), (top_ / (host + "_state")).string()};
  }
  void offer(const std::string& host) const {
    const sync::Offer offer{
        .destination = "tree",
        .owner = meeting_.owner,
        .manifest = sync::scan((top_ / "client").string(), sync::By::own_rules).value().manifest};
    const auto answer = sync::answer_offer(offer, folders(host));
    ASSERT_TRUE(answer) << answer.error().message;
  }
  // Writes a file as rsync would: it appears whole.
  void bring(const std::string& path) const {
    const fs::path to = top_ / "seed/tree" / path;
    fs::create_directories(to.parent_path());
    fs::copy(top_ / "client" / path, to.string() + ".new", fs::copy_options::copy_symlinks);
    fs::last_write_time(to.string() + ".new", fs::last_write_time(top_ / "client" / path));
    fs::rename(to.string() + ".new", to);
  }
  void start() {
    io::Pipe to = io::make_pipe().value();
    io::Pipe from = io::make_pipe().value();
    server_ = fork();
    if (server_ == 0) {
      to.write.reset();
      const Status served = serve(to.read.get(), from.write.get(), folders("seed"));
      _exit(served ? 0 : 1);
    }
    client_ = std::move(to.write);
    const std::string request = encode_meeting(meeting_);
    ASSERT_TRUE(io::write_all(client_.get(), request, "request"));
    std::string line;
    for (char c = 0; c != '\n' && read(from.read.get(), &c, 1) == 1;)
      line += c;
    const auto answer = parse_answer(line);
    ASSERT_TRUE(answer) << line;
    meeting_.port = std::get<Listening>(*answer).port;
    meeting_.addresses = {"127.0.0.1"};
  }
  void seed_is_done() const { ASSERT_TRUE(io::write_all(client_.get(), "!", "word")); }
  int stop() {
    if (server_ <= 0) return 0;
    client_.reset();
    int status = 0;
    waitpid(std::exchange(server_, 0), &status, 0);
    return status;
  }
  // Returns the last answer, or the error as an answer.
  Answer take_all() {
    io::Pipe out = io::make_pipe().value();
    const Status taken = take(encode_meeting(meeting_), out.write.get(), folders("taker"));
    signal(SIGTERM, SIG_DFL);
    if (!taken) return Trouble{taken.error().message};
    out.write.reset();
    std::string said(4096, '\0');
    const ssize_t got = read(out.read.get(), said.data(), said.size());
    said.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    said.erase(said.rfind('\n'));
    return parse_answer(said.substr(said.rfind('\n') + 1)).value();
  }
  std::string there(const std::string& path) const {
    std::ifstream file(top_ / "taker/tree" / path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path top_;
  Meeting meeting_;
  pid_t server_ = 0;
  io::Fd client_;
};

TEST_F(PeerTest, AllThatIsNeededComes) {
  const std::string big(700'000, 'b');
  write("a", "one");
  write("deep/big", big);
  write("empty", "");
  fs::create_symlink("a", top_ / "client/link");
  offer("seed");
  offer("taker");
  for (const char* path : {"a", "deep/big", "empty", "link"})
    bring(path);
  start();
  const Answer answer = take_all();
  ASSERT_TRUE(std::holds_alternative<Done>(answer)) << std::get<Trouble>(answer).why;
  const Done done = std::get<Done>(answer);
  EXPECT_EQ(done.files, 4U);
  EXPECT_EQ(done.bytes, big.size() + 3);
  EXPECT_EQ(done.missing, 0U);
  EXPECT_EQ(there("a"), "one");
  EXPECT_EQ(there("deep/big"), big);
  EXPECT_EQ(fs::read_symlink(top_ / "taker/tree/link"), "a");
  EXPECT_EQ(fs::last_write_time(top_ / "taker/tree/a"), fs::last_write_time(top_ / "client/a"));
  EXPECT_EQ(stop(), 0);
}

TEST_F(PeerTest, WhatIsNotYetThereIsWaitedForAndWhatNeverComesIsMissing) {
  write("a", "one");
  write("b", "two");
  write("c", "three");
  offer("seed");
  offer("taker");
  bring("a");
  fs::create_directories(top_ / "seed/tree");
  std::ofstream(top_ / "seed/tree/c") << "tree!";  // the same length, another time
  start();
  const pid_t later = fork();
  if (later == 0) {
    // Not before the first file is there: so the taker has to wait for the second.
    while (!fs::exists(top_ / "taker/tree/a"))
      usleep(1000);
    bring("b");
    while (!fs::exists(top_ / "taker/tree/b"))
      usleep(1000);
    seed_is_done();
    _exit(0);
  }
  const Answer answer = take_all();
  waitpid(later, nullptr, 0);
  ASSERT_TRUE(std::holds_alternative<Done>(answer)) << std::get<Trouble>(answer).why;
  EXPECT_EQ(std::get<Done>(answer).missing, 1U);
  EXPECT_EQ(there("b"), "two");
  EXPECT_FALSE(fs::exists(top_ / "taker/tree/c"));
}

TEST_F(PeerTest, WithoutTheKeyNothingComes) {
  write("a", "one");
  offer("seed");
  offer("taker");
  bring("a");
  start();
  const std::string key = std::exchange(meeting_.key, random_key(kKeyBytes));
  const Answer answer = take_all();
  ASSERT_TRUE(std::holds_alternative<Trouble>(answer));
  EXPECT_NE(std::get<Trouble>(answer).why.find("127.0.0.1"), std::string::npos);
  EXPECT_FALSE(fs::exists(top_ / "taker/tree/a"));
  meeting_.key = key;
  EXPECT_TRUE(std::holds_alternative<Done>(take_all()));
}

TEST_F(PeerTest, OnlyWhatWasOfferedIsServed) {
  write("a", "one");
  offer("seed");
  bring("a");
  std::ofstream(top_ / "seed/tree/private") << "private";
  // The taker's own client offered it more files than the seed got.
  write("private", "private");
  fs::last_write_time(top_ / "client/private", fs::last_write_time(top_ / "seed/tree/private"));
  offer("taker");
  start();
  const Answer answer = take_all();
  ASSERT_TRUE(std::holds_alternative<Trouble>(answer));
  EXPECT_FALSE(fs::exists(top_ / "taker/tree/private"));
  EXPECT_FALSE(fs::exists(top_ / "taker/tree/a"));
}

TEST_F(PeerTest, AnotherOwnersTreeIsNeitherServedNorWritten) {
  write("a", "one");
  offer("seed");
  offer("taker");
  bring("a");
  start();
  meeting_.owner.host = "other";
  const Answer answer = take_all();
  ASSERT_TRUE(std::holds_alternative<Trouble>(answer));
  EXPECT_NE(std::get<Trouble>(answer).why.find("taken over"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::peer
