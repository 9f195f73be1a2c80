#include "io/resolve.h"

#include <gtest/gtest.h>

namespace lockstep::io {
namespace {

TEST(Resolve, Digits) {
  const auto text = [](const std::string& host) {
    const auto found = resolve_numeric(host, 80);
    return found ? address_text(found->addresses.front()) : "a name";
  };
  EXPECT_EQ(text("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(text("2001:0db8::0001"), "2001:db8::1");
  EXPECT_EQ(text("::ffff:10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(text("localhost"), "127.0.0.1");
  EXPECT_EQ(text("node1"), "a name");
  EXPECT_EQ(text("10.0.0.256"), "a name");
  EXPECT_EQ(text(""), "a name");
}

TEST(Resolve, Loopback) {
  const auto loopback = [](const std::string& host) {
    return is_loopback(resolve_numeric(host, 0)->addresses.front());
  };
  EXPECT_TRUE(loopback("127.0.1.1"));
  EXPECT_TRUE(loopback("::1"));
  EXPECT_TRUE(loopback("::ffff:127.0.0.1"));
  EXPECT_FALSE(loopback("128.0.0.1"));
  EXPECT_FALSE(loopback("::2"));
}

TEST(Resolve, NamesComeBackOnTheLoop) {
  Loop loop;
  Timer limit(loop);
  limit.start(std::chrono::seconds(30), [] {});
  int left = 2;
  const auto ended = [&] {
    if (--left == 0) limit.cancel();
  };
  const Lookup good(loop, "127.0.0.1", 80, [&](Result<Resolved> found) {
    EXPECT_EQ(address_text(found.value().addresses.front()), "127.0.0.1");
    ended();
  });
  const Lookup bad(loop, "no-such-host.invalid", 80, [&](Result<Resolved> found) {
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().message.find("'no-such-host.invalid'"), std::string::npos);
    ended();
  });
  EXPECT_EQ(left, 2);
  loop.run();
  EXPECT_EQ(left, 0);
}

TEST(Resolve, AForgottenLookupIsNeverTold) {
  bool called = false;
  for (int i = 0; i < 20; ++i) {
    Loop loop;
    {
      const Lookup lookup(loop, "127.0.0.1", 1, [&](const Result<Resolved>&) { called = true; });
    }
    for (int turn = 0; turn < 3; ++turn)
      loop.run_once();
  }
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace lockstep::io
