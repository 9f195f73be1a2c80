#include "page/page_answer.h"

#include <gtest/gtest.h>

namespace lockstep::page {
namespace {

PageAnswer served() {
  return {.node = "n1",
          .group_rank = 2,
          .host = "127.0.0.1",
          .port = 41807,
          .token = "0123456789abcdef"};
}

TEST(ThePlaceOfAPage, ComesBackAsItWasTold) {
  const auto again = read_page_answer(page_answer_json(served()));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, served());
  EXPECT_TRUE(is_known({served()}, *again));
  PageAnswer none{.node = "n2", .refusal = "no port"};
  EXPECT_EQ(read_page_answer(page_answer_json(none)).value(), none);
  EXPECT_FALSE(is_known({served()}, none));
  EXPECT_EQ(page_address("127.0.0.1", 8000, "abc"), "http://127.0.0.1:8000/?token=abc");
  EXPECT_EQ(page_address("::1", 8000, "abc"), "http://[::1]:8000/?token=abc");
}

// The address goes to a terminal and into an ssh request, and a host may say anything.
TEST(ThePlaceOfAPage, OfAHostileHostIsRefused) {
  const auto with = [](void (*change)(PageAnswer&)) {
    PageAnswer answer = served();
    change(answer);
    return static_cast<bool>(read_page_answer(page_answer_json(answer)));
  };
  EXPECT_TRUE(with([](PageAnswer& a) { a.host = "::1"; }));
  EXPECT_FALSE(with([](PageAnswer& a) { a.host = ""; }));
  EXPECT_FALSE(with([](PageAnswer& a) { a.host = "x\x1b[2J"; }));
  EXPECT_FALSE(with([](PageAnswer& a) { a.host = "-oProxy Command"; }));
  EXPECT_FALSE(with([](PageAnswer& a) { a.host = "a/b"; }));
  EXPECT_FALSE(with([](PageAnswer& a) { a.token = "short"; }));
  EXPECT_FALSE(with([](PageAnswer& a) { a.token = "0123456789abcdef&x=y"; }));
  EXPECT_FALSE(with([](PageAnswer& a) { a.token += '\n'; }));
  EXPECT_FALSE(read_page_answer("[]"));
  EXPECT_FALSE(read_page_answer(std::string(10'000, '[')));
  EXPECT_EQ(read_page_answer(R"({"port":-5,"node":7})").value(), PageAnswer{});
}

}  // namespace
}  // namespace lockstep::page
