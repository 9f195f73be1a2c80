#include "rent/watch_talk.h"

#include "rent/guard_talk.h"

#include <gtest/gtest.h>

namespace lockstep::rent {
namespace {

WatchWord word() {
  return {.verb = WatchVerb::watch,
          .rental = "abcdefghij0123456789",
          .cluster = "lab",
          .tree = "my project",
          .back = {"out", "logs/a b", ""},
          .job = "abcd1234"};
}

TEST(WatchTalk, AWordComesAsItWasSaid) {
  for (const WatchVerb verb :
       {WatchVerb::watch, WatchVerb::claim, WatchVerb::ask, WatchVerb::drop, WatchVerb::fetched}) {
    WatchWord said = word();
    said.verb = verb;
    const auto heard = read_watch_word(watch_word_text(said));
    ASSERT_TRUE(heard) << heard.error().message;
    EXPECT_EQ(heard->verb, verb);
    EXPECT_EQ(watch_word_text(*heard), watch_word_text(said));
  }
}

TEST(WatchTalk, WhatWouldLeadElsewhereIsRefused) {
  const auto refused = [](auto change) {
    WatchWord bad = word();
    change(bad);
    EXPECT_FALSE(read_watch_word(watch_word_text(bad))) << watch_word_text(bad);
  };
  for (const char* tree : {"..", ".", ".ssh", "a/b", "/", "a\\/../b"})
    refused([&](WatchWord& bad) { bad.tree = tree; });
  for (const char* path : {"..", "../x", "/etc", "a//b", "a/./b", "a/..", "a/"})
    refused([&](WatchWord& bad) { bad.back.emplace_back(path); });
  refused([](WatchWord& bad) { bad.back.emplace_back("a\0b", 3); });
  refused([](WatchWord& bad) { bad.back.assign(257, "a"); });
  refused([](WatchWord& bad) { bad.rental = "../../../../../etc/x"; });
  refused([](WatchWord& bad) { bad.cluster = "../x"; });
  refused([](WatchWord& bad) { bad.job = "--help"; });
  for (const char* text : {"", "{}", "[]", R"({"verb":"own"})", R"({"verb":7})"})
    EXPECT_FALSE(read_watch_word(text)) << text;
}

TEST(WatchTalk, AnAnswerComesWithThatOfTheGuard) {
  const GuardAnswer said{.now_ms = 1'800'000'000'000,
                         .accounts = {"aws=account 1234"},
                         .watch = WatchAnswer{.known = true,
                                              .taken = true,
                                              .ended = true,
                                              .code = 7,
                                              .note = "its machines are given back",
                                              .root = "/home/me/x/my project",
                                              .whole = true,
                                              .back = {"out", ""},
                                              .logs = "/home/me/x",
                                              .log_endings = {".log.1", ".log"}}};
  const auto heard = read_guard_answer(guard_answer_text(said));
  ASSERT_TRUE(heard && heard->watch);
  EXPECT_EQ(heard->accounts, said.accounts);
  EXPECT_EQ(watch_answer_json(*heard->watch), watch_answer_json(*said.watch));
  GuardAnswer bad = said;
  bad.watch->root = "/home/me/../you";
  EXPECT_FALSE(read_guard_answer(guard_answer_text(bad)));
  bad = said;
  bad.watch->logs = "here";
  EXPECT_FALSE(read_guard_answer(guard_answer_text(bad)));
  bad = said;
  bad.watch->log_endings.emplace_back("/../../.bashrc");
  EXPECT_FALSE(read_guard_answer(guard_answer_text(bad)));
}

TEST(WatchTalk, AnAccountIsComparedWithoutWhoWeAreInIt) {
  EXPECT_EQ(account_word("aws", "account 1234, user ann"), "aws=account 1234");
  EXPECT_EQ(account_word("aws", "account 1234, user bob"), "aws=account 1234");
}

}  // namespace
}  // namespace lockstep::rent
