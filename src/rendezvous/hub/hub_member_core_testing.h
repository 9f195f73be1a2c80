// Helpers for tests of the member's core: no driver, no hub, and a clock set by hand.
#pragma once

#include "rendezvous/hub/hub_member_core.h"

#include <gtest/gtest.h>

#include <errno.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub::testing {
using namespace std::chrono_literals;
using Core = HubMemberCore;
using Phase = Core::Phase;

inline const Error kRefused{Errc::unavailable, "Connection refused", {}, ECONNREFUSED};
inline const Error kClosed{Errc::unavailable, "the connection was closed", {}, 0};

// A member with a recording driver and a clock set by the test.
struct HubMemberCoreTest : public ::testing::Test {
  static HubMemberRules rules() {
    HubMemberRules rules;
    rules.connect_timeout = 60s;
    rules.join_timeout = 100s;
    rules.offer.role = "default";
    rules.offer.host = "b";
    return rules;
  }

  // Returns the steps since the last call: "dial 60 3", "join running", "hang up", ...
  std::string done() {
    std::string text;
    const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
    for (const Core::Step& step : core.take_steps()) {
      if (const auto* dial = std::get_if<Core::Dial>(&step))
        add("dial " + std::to_string(dial->patience / 1s) + " " +
            std::to_string(dial->refused_patience / 1s));
      if (std::holds_alternative<Core::StopDialing>(step)) add("stop dialing");
      if (std::holds_alternative<Core::HangUp>(step)) add("hang up");
      if (std::holds_alternative<Core::OpenStore>(step)) add("open store");
      if (const auto* send = std::get_if<Core::Send>(&step)) add(name(send->frame));
    }
    return text;
  }
  static std::string name(const Frame& frame) {
    if (const auto* join = std::get_if<Join>(&frame)) {
      if (join->holds == Join::Holds::running) return "join running";
      if (join->holds == Join::Holds::finished) return "join finished";
      return "join";
    }
    if (const auto* leave = std::get_if<Leave>(&frame)) {
      if (leave->how == Leave::How::returns) return "leave returns";
      if (leave->how == Leave::How::stopped) return "leave stopped";
      return leave->how == Leave::How::failed ? "leave failed" : "leave succeeded";
    }
    if (const auto* failed = std::get_if<Failed>(&frame)) return "failed " + failed->line;
    if (std::holds_alternative<Beat>(frame)) return "beat";
    if (const auto* news = std::get_if<News>(&frame)) return "news " + news->text;
    if (std::holds_alternative<Finish>(frame)) return "finish";
    if (std::holds_alternative<TellReport>(frame)) return "report";
    if (const auto* offer = std::get_if<StoreOffer>(&frame))
      return "store " + offer->addr + offer->error;
    return "other";
  }
  // Returns the outcomes since the last call.
  std::string heard() {
    std::string text;
    const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
    while (auto outcome = core.next_outcome()) {
      const auto words = [](const Status& status) {
        return status ? std::string("ok") : status.error().message;
      };
      if (const auto* to = std::get_if<Core::Connected>(&*outcome))
        add("connected: " + words(to->status));
      if (const auto* to = std::get_if<Core::Joined>(&*outcome)) {
        if (!to->round) add("joined: " + to->round.error().message);
        if (to->round)
          add(*to->round ? "joined round " + std::to_string((*to->round)->number) : "spare");
      }
      if (const auto* to = std::get_if<Core::AllFinished>(&*outcome))
        add("finished: " + words(to->status));
      if (const auto* to = std::get_if<Interruption>(&*outcome))
        add((to->kind == Interruption::Kind::end ? "end: " : "rejoin: ") + to->why);
      if (const auto* to = std::get_if<Core::Reported>(&*outcome))
        add("reports " + std::to_string(to->reports.size()));
      if (std::holds_alternative<Core::Departed>(*outcome)) add("left");
      if (const auto* to = std::get_if<News>(&*outcome))
        add("news of " + std::to_string(to->from) + ": " + to->text);
    }
    return text;
  }

  void link() { core.connected(1000ms, 5000ms, 2, now); }
  void open() {
    core.connect("h:1", now);
    link();
    EXPECT_EQ(done(), "dial 60 60");
    EXPECT_EQ(heard(), "connected: ok");
  }
  void place(std::int64_t number) {
    Placed placed;
    placed.round.number = number;
    core.take(placed, now);
  }
  void join(std::int64_t number = 0) {
    core.join(now);
    EXPECT_EQ(done(), "join");
    place(number);
    EXPECT_EQ(heard(), "joined round " + std::to_string(number));
  }
  void in_a_round() {
    open();
    join();
  }
  // Advances the time in steps. The hub shows a sign of life in each step unless `silent`.
  void pass(std::chrono::milliseconds time, bool silent = false) {
    for (; time > 0ms; time -= 500ms) {
      now += 500ms;
      if (!silent && core.link() == Core::Link::up) core.bytes_came(now);
      core.tick("W", now);
    }
  }

  Core core{rules()};
  io::TimePoint now{1000s};
};

}  // namespace lockstep::rendezvous::hub::testing
