#include "io/dialer.h"

#include "io/listen.h"
#include "io/place_text.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep::io {
namespace {

using std::chrono::milliseconds;

DialRules one_round(milliseconds patience = milliseconds(5000)) {
  DialRules rules;
  rules.patience = patience;
  rules.once = true;
  return rules;
}

DialRules many_rounds(milliseconds patience) {
  DialRules rules;
  rules.patience = patience;
  rules.first_pause = milliseconds(1);
  rules.longest_pause = milliseconds(5);
  return rules;
}

int port_of_nobody() {
  return open_listener("127.0.0.1", 0, 8)->port;
}

Dialer::Target target(const std::string& host, int port) {
  return {"connect to " + place_text(host, port), host, port};
}

Result<Fd> dial(const std::string& host, int port, const DialRules& rules = one_round()) {
  Loop loop;
  Result<Fd> result = fail(Errc::internal, "no answer");
  const auto end = [&](Result<Fd> fd) {
    result = std::move(fd);
    loop.stop();
  };
  const Dialer one(loop, target(host, port), rules,
                   {.connected = [&](Fd fd) { end(std::move(fd)); },
                    .round_failed = {},
                    .gave_up = [&](Error error) { end(tl::make_unexpected(std::move(error))); }});
  loop.run();
  return result;
}

TEST(Dialer, Connects) {
  const auto listener = open_listener("127.0.0.1", 0, 8);
  ASSERT_TRUE(listener);
  const auto fd = dial("127.0.0.1", listener->port);
  ASSERT_TRUE(fd) << fd.error().message;
  EXPECT_TRUE(peer_name(fd->get()).starts_with("127.0.0.1:"));
  EXPECT_TRUE(dial("localhost", listener->port));
}

TEST(Dialer, NamesWhatItTried) {
  const int port = port_of_nobody();
  const auto one = dial("127.0.0.1", port);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().message,
            "connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
  EXPECT_EQ(one.error().sys, ECONNREFUSED);
  const auto both = dial("localhost", port);
  ASSERT_FALSE(both);
  EXPECT_NE(both.error().message.find("(tried 127.0.0.1); "), std::string::npos)
      << both.error().message;
  EXPECT_NE(both.error().message.find("(tried ::1)"), std::string::npos) << both.error().message;
}

TEST(Dialer, ANameThatNobodyKnows) {
  const auto none = dial("ip6-no-such-host.invalid", 1);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("ip6-no-such-host.invalid"), std::string::npos)
      << none.error().message;
}

TEST(Dialer, GivesUpInTime) {
  // Room for one connection, which is never accepted.
  const auto full = open_listener("127.0.0.1", 0, 0);
  ASSERT_TRUE(full);
  std::vector<Fd> crowd;
  crowd.reserve(4);
  for (int i = 0; i < 4; ++i) {
    auto fd = dial("127.0.0.1", full->port, one_round(milliseconds(100)));
    if (!fd) {
      EXPECT_EQ(fd.error().sys, ETIMEDOUT) << fd.error().message;
      EXPECT_NE(fd.error().message.find("SYN unanswered"), std::string::npos);
      return;
    }
    crowd.push_back(std::move(*fd));
  }
  FAIL() << "a full backlog accepts";
}

// The server starts between two rounds.
TEST(Dialer, TriesAgainUntilSomebodyListens) {
  Loop loop;
  const int port = port_of_nobody();
  Result<Listener> server = fail(Errc::internal, "not yet");
  bool connected = false;
  const Dialer one(loop, target("127.0.0.1", port), many_rounds(milliseconds(60'000)),
                   {.connected =
                        [&](Fd) {
                          connected = true;
                          loop.stop();
                        },
                    .round_failed =
                        [&](const Error& error) {
                          EXPECT_EQ(error.sys, ECONNREFUSED);
                          if (!server) server = open_listener("127.0.0.1", port, 8);
                        },
                    .gave_up = [](const Error& error) { FAIL() << error.message; }});
  loop.run();
  EXPECT_TRUE(connected);
}

TEST(Dialer, NeedNotWaitForAHostThatIsThere) {
  Loop loop;
  const int port = port_of_nobody();
  DialRules rules = many_rounds(milliseconds(60'000));
  rules.first_pause = rules.longest_pause = milliseconds(50'000);
  Result<Listener> server = fail(Errc::internal, "not yet");
  const TimePoint began = Clock::now();
  std::unique_ptr<Dialer> one;
  one = std::make_unique<Dialer>(
      loop, target("127.0.0.1", port), rules,
      Dialer::Events{.connected = [&](Fd) { loop.stop(); },
                     .round_failed =
                         [&](const Error&) {
                           server = open_listener("127.0.0.1", port, 8);
                           one->hurry();
                         },
                     .gave_up = [](const Error& error) { FAIL() << error.message; }});
  loop.run();
  EXPECT_TRUE(server);
  EXPECT_EQ(one->stage(), Dialer::Stage::connected);
  EXPECT_LT(Clock::now() - began, rules.first_pause);
}

// The owner greets in vain, asks for the same address again, dislikes that answer too. The dialer
// then starts the next round with the owner's error.
TEST(Dialer, GoesOnWhenItsOwnerDislikesWhatAnswers) {
  Loop loop;
  const auto server = open_listener("127.0.0.1", 0, 8);
  ASSERT_TRUE(server);
  std::vector<std::string> met;
  std::unique_ptr<Dialer> one;
  const auto dislike = [&](const std::string& why) {
    EXPECT_EQ(one->stage(), Dialer::Stage::connected);
    met.push_back(why);
    one->go_on({Errc::corrupt, why, {}, 0});
  };
  one = std::make_unique<Dialer>(
      loop, target("127.0.0.1", server->port), many_rounds(milliseconds(60'000)),
      Dialer::Events{.connected =
                         [&](Fd) {
                           met.emplace_back("greeting");
                           one->once_more([&](Fd) { dislike("probe"); });
                         },
                     .round_failed =
                         [&](const Error& error) {
                           met.push_back("round: " + error.message);
                           if (met.size() < 6) return;
                           one.reset();
                           loop.stop();
                         },
                     .gave_up = [](const Error& error) { FAIL() << error.message; }});
  loop.run();
  const std::vector<std::string> round = {"greeting", "probe", "round: probe"};
  std::vector<std::string> twice = round;
  twice.insert(twice.end(), round.begin(), round.end());
  EXPECT_EQ(met, twice);
}

TEST(Dialer, IsSilentWhenItIsGone) {
  Loop loop;
  {
    const Dialer one(loop, target("127.0.0.1", 1), many_rounds(milliseconds(60'000)),
                     {.connected = [](Fd) { FAIL(); },
                      .round_failed = {},
                      .gave_up = [](const Error&) { FAIL(); }});
    const Dialer two(loop, target("no-such-host.invalid", 1), many_rounds(milliseconds(60'000)),
                     {.connected = [](Fd) { FAIL(); },
                      .round_failed = {},
                      .gave_up = [](const Error&) { FAIL(); }});
    loop.run_once();  // begins the connection and the look-up
    EXPECT_NE(one.stage(), Dialer::Stage::connected);
  }
  loop.run();
}

TEST(Dialer, MayGoInEachOfItsEvents) {
  const auto server = open_listener("127.0.0.1", 0, 8);
  const int nobody = port_of_nobody();
  int told = 0;
  for (const bool once : {true, false}) {
    for (const int port : {server->port, nobody}) {
      Loop loop;
      std::unique_ptr<Dialer> one;
      const auto end = [&](const auto&) {
        ++told;
        one.reset();
      };
      one = std::make_unique<Dialer>(
          loop, target("127.0.0.1", port), once ? one_round() : many_rounds(milliseconds(5000)),
          Dialer::Events{.connected = end, .round_failed = end, .gave_up = end});
      loop.run();
    }
  }
  EXPECT_EQ(told, 4);
}

TEST(PlaceText, Brackets) {
  EXPECT_EQ(place_text("h", 1), "h:1");
  EXPECT_EQ(place_text("::1", 2), "[::1]:2");
}

}  // namespace
}  // namespace lockstep::io
