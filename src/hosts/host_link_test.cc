// The commands here print words and end, and never greet: the error must hold those words.
#include "hosts/host_link.h"

#include "io/loop_testing.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::hosts {
namespace {

class CommandLinkTest : public ::testing::Test {
 protected:
  CommandLinkTest() {
    signal(SIGPIPE, SIG_IGN);
    std::string name = "/tmp/lockstep-link-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~CommandLinkTest() override { std::filesystem::remove_all(folder_); }

  void open(const std::string& program, const std::string& script) {
    link_.emplace(loop_,
                  Link::Settings{.place = {.name = "n1", .target = {}},
                                 .command = LinkCommand{{program, "-c", script}, {"F=" + folder_}}},
                  Link::Events{[](const link::Frame&) {},
                               [this](std::string why) { failed_ = std::move(why); }});
  }
  std::string end_of(const std::string& program, const std::string& script) {
    open(program, script);
    EXPECT_TRUE(io::run_until(loop_, [this] { return failed_.has_value(); }));
    return failed_.value_or("");
  }

  io::Loop loop_;
  std::string folder_;
  std::optional<HostLink> link_;
  std::optional<std::string> failed_;
};

TEST_F(CommandLinkTest, TheLastWordsOfTheCommandTellTheEnd) {
  EXPECT_EQ(end_of("sh", "echo first >&2; printf 'no \\033[2Jstep\\n' >&2"), "n1: no \\x1b[2Jstep");
}

TEST_F(CommandLinkTest, ASilentEndIsAClosedConnection) {
  EXPECT_EQ(end_of("sh", "exit 1"), "n1: the connection was closed");
}

TEST_F(CommandLinkTest, ManyWordsAreNotKept) {
  EXPECT_EQ(end_of("sh", "seq 100000 >&2; echo last >&2"), "n1: last");
}

TEST_F(CommandLinkTest, AMissingProgramIsTold) {
  EXPECT_NE(end_of("no-such-program", "").find("no-such-program"), std::string::npos);
}

TEST_F(CommandLinkTest, ACommandThatLeadsNowhereYetIsEnded) {
  open("sh",
       "trap '' PIPE; trap 'touch $F/ended; exit' TERM; touch $F/began; while :; do sleep 0.01; "
       "done");
  EXPECT_TRUE(io::run_until(loop_, [this] { return std::filesystem::exists(folder_ + "/began"); }));
  link_.reset();
  EXPECT_TRUE(io::run_until(loop_, [this] { return std::filesystem::exists(folder_ + "/ended"); }));
}

}  // namespace
}  // namespace lockstep::hosts
