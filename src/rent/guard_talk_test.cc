#include "rent/guard_talk.h"

#include "base/error_testing.h"
#include "codec/json.h"

#include <gtest/gtest.h>

namespace lockstep::rent {
namespace {

using cloud::Attempt;
using cloud::Rental;

constexpr std::int64_t kNow = 1'800'000'000'000;
constexpr const char* kOwner = "0123456789abcdef";
constexpr const char* kKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n";

Attempt attempt(int number, cloud::Ending ending, Attempt::State state = Attempt::State::running) {
  Attempt made;
  made.number = number;
  made.offer.provider = "lambda";
  made.offer.ending = ending;
  made.state = state;
  made.call.body = "host key inside";
  made.call.token = "ls-name";
  cloud::Held held;
  held.machine.id = "i1";
  held.machine.address = "198.51.100.7";
  held.machine.user = "ubuntu";
  held.host_key = "ssh-ed25519 AAAA";
  made.machines.push_back(held);
  return made;
}

Rental rental() {
  Rental made;
  made.id = "abcdefghij0123456789";
  made.cluster = "lab";
  made.owner = kOwner;
  made.terms.guard = "me@host";
  made.terms.allow_from = "192.0.2.1/32";
  made.terms.guard_from = "192.0.2.2/32";
  made.terms.own_address = true;
  made.created_ms = kNow;
  made.ends_ms = kNow + 1000;
  made.user_data = "host key inside";
  made.start_script = "host key inside";
  made.attempts = {attempt(1, cloud::Ending::with_guard)};
  return made;
}

std::string text_of(const Rental& one) {
  return guard_news_text({.kind = GuardNewsKind::working, .rental = one, .user_key = kKey});
}

TEST(GuardTalk, AGuardElsewhereIsToldWhatItNeedsAndNoMore) {
  Rental all = rental();
  all.attempts.push_back(attempt(2, cloud::Ending::with_guard, Attempt::State::refused));
  all.attempts.push_back(attempt(3, cloud::Ending::by_itself));
  const std::string text = guard_news_text(guard_news(all, GuardNewsKind::launching, kKey));
  EXPECT_EQ(text.find("host key inside"), std::string::npos) << text;
  const auto news = read_guard_news(text, kOwner);
  ASSERT_TRUE(news) << news.error().message;
  EXPECT_EQ(news->kind, GuardNewsKind::launching);
  EXPECT_EQ(news->user_key, kKey);
  EXPECT_EQ(news->newest, 3);
  EXPECT_EQ(news->rental.terms.guard, "here");
  EXPECT_EQ(news->rental.terms.allow_from, "192.0.2.1/32,192.0.2.2/32");
  EXPECT_FALSE(news->rental.terms.own_address);
  ASSERT_EQ(news->rental.attempts.size(), 1U);
  EXPECT_EQ(news->rental.attempts[0].call.token, "ls-name");
  EXPECT_EQ(news->rental.ends_ms, kNow + 1000);
}

TEST(GuardTalk, WhatMakesNoSenseIsRefused) {
  ASSERT_TRUE(read_guard_news(text_of(rental()), kOwner));
  EXPECT_FALSE(read_guard_news(text_of(rental()), "ffffffffffffffff"));
  for (const char* text : {"", "{}", "[]", R"({"kind":"working"})", R"({"kind":7})"})
    EXPECT_FALSE(read_guard_news(text, kOwner)) << text;
  const auto refused = [](auto change) {
    Rental bad = rental();
    change(bad, bad.attempts[0].machines[0]);
    return !read_guard_news(text_of(bad), kOwner);
  };
  EXPECT_TRUE(refused([](Rental& r, auto&) { r.id = "../../../../../etc/x"; }));
  EXPECT_TRUE(refused([](Rental& r, auto&) { r.cluster = "../x"; }));
  EXPECT_TRUE(refused([](Rental& r, auto&) { r.ends_ms = INT64_MAX; }));
  EXPECT_TRUE(refused([](Rental& r, auto&) { r.created_ms = -1; }));
  EXPECT_TRUE(refused([](Rental& r, auto&) { r.attempts[0].asked_ms = INT64_MIN; }));
  EXPECT_TRUE(refused([](Rental& r, auto&) { r.attempts.resize(257, r.attempts[0]); }));
  EXPECT_TRUE(refused([](Rental&, cloud::Held& h) { h.machine.id.clear(); }));
  EXPECT_TRUE(refused([](Rental&, cloud::Held& h) { h.machine.address = "-oProxyCommand=x"; }));
  EXPECT_TRUE(refused([](Rental&, cloud::Held& h) { h.machine.user = "-l"; }));
  EXPECT_TRUE(refused([](Rental&, cloud::Held& h) { h.machine.port = 0; }));
  EXPECT_TRUE(refused([](Rental&, cloud::Held& h) { h.host_key = "ssh-ed25519 A\n* B"; }));
  for (const char* key : {"AAAA", "-----BEGIN OPENSSH PRIVATE KEY-----\n\x01"})
    EXPECT_FALSE(read_guard_news(guard_news_text({.rental = rental(), .user_key = key}), kOwner));
}

TEST(GuardTalk, AnAnswerComesBackAndIsReadStrictly) {
  const auto read = read_guard_answer(
      guard_answer_text(GuardAnswer{.now_ms = kNow, .cidr = "198.51.100.7/32", .over = true}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->now_ms, kNow);
  EXPECT_EQ(read->cidr, "198.51.100.7/32");
  EXPECT_TRUE(read->over && !read->started);
  const auto bad =
      read_guard_answer(guard_answer_text(fail(Errc::not_found, "no key\x1b[31m", "put one")));
  ASSERT_FALSE(bad);
  EXPECT_EQ(code_of(bad), Errc::denied);
  EXPECT_EQ(bad.error().message.find('\x1b'), std::string::npos);
  EXPECT_EQ(bad.error().hint, "put one");
  for (const Errc code : {Errc::unavailable, Errc::timeout}) {
    const auto busy = read_guard_answer(guard_answer_text(fail(code, "it is busy")));
    ASSERT_FALSE(busy);
    EXPECT_EQ(code_of(busy), Errc::unavailable);
  }
  for (const char* text :
       {"", "{}", R"({"now_ms":-1})", R"({"now_ms":1,"cidr":"x/32"})",
        R"({"now_ms":1,"cidr":"1.2.3.4/8"})", R"({"now_ms":1,"cidr":"1.2.3.4"})"})
    EXPECT_FALSE(read_guard_answer(text)) << text;
}

TEST(GuardTalk, ClocksMayDifferByTenSeconds) {
  EXPECT_EQ(clock_trouble(kNow + 10'000, kNow - 500, kNow), "");
  EXPECT_EQ(clock_trouble(kNow - 10'500, kNow - 500, kNow), "");
  EXPECT_EQ(clock_trouble(kNow + 61'000, kNow, kNow),
            "its clock is 61 s ahead of this machine's, and leases end by the clock");
  EXPECT_EQ(clock_trouble(kNow - 61'000, kNow, kNow),
            "its clock is 61 s behind this machine's, and leases end by the clock");
}

TEST(GuardTalk, OnlyWhatNeedsAGuardElsewhereConcernsIt) {
  Rental one = rental();
  EXPECT_TRUE(concerns_guard(one));
  one.attempts[0].offer.ending = cloud::Ending::by_itself;
  EXPECT_FALSE(concerns_guard(one));
  one = rental();
  one.terms.guard = "here";
  EXPECT_FALSE(concerns_guard(one));
  one.terms.guard.clear();
  EXPECT_FALSE(concerns_guard(one));
}

TEST(GuardTalk, NewsAreTakenUnlessMoreIsKnownOrAllIsOver) {
  const auto fate = [](const Rental* known, const Rental& told, int newest = 1) {
    return fate_of_news(known, {.rental = told, .newest = newest});
  };
  Rental known = rental();
  Rental told = rental();
  EXPECT_EQ(fate(nullptr, told), NewsFate::take);
  EXPECT_EQ(fate(&known, told), NewsFate::take);
  known.attempts[0].number = 2;
  EXPECT_EQ(fate(&known, told), NewsFate::stale);
  EXPECT_EQ(fate(&known, told, 2), NewsFate::take) << "the second came to nothing";
  known.attempts[0].number = 1;
  known.wanted = false;
  EXPECT_EQ(fate(&known, told), NewsFate::over);
  EXPECT_EQ(fate(&known, told, 2), NewsFate::take) << "it is launched anew";
  told.wanted = false;
  EXPECT_EQ(fate(&known, told), NewsFate::take);
  told.wanted = true;
  told.attempts.clear();
  EXPECT_EQ(fate(&known, told), NewsFate::take);
}

}  // namespace
}  // namespace lockstep::rent
