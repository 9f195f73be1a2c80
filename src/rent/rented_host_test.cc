#include "rent/rented_host.h"

#include "rent/lease_answer.h"

#include <gtest/gtest.h>

namespace lockstep::rent {
namespace {

using std::chrono::milliseconds;

TEST(FirstContact, LooksTenTimesASecondAndLaterOnce) {
  EXPECT_EQ(next_try(milliseconds(0)), milliseconds(100));
  EXPECT_EQ(next_try(milliseconds(59'999)), milliseconds(100));
  EXPECT_EQ(next_try(milliseconds(60'000)), milliseconds(1000));
  EXPECT_EQ(next_try(milliseconds(900'000)), milliseconds(1000));
}

constexpr const char* kState = R"("state": {"phase": "running", "left_ms": 5})";

TEST(LeaseAnswer, SaysTheFreshKey) {
  const auto key = read_key_answer(std::string("{") + kState +
                                   R"(, "host_key": "ssh-ed25519 AAAA x", "fresh": true})"
                                   "\n");
  EXPECT_EQ(key.error, "");
  EXPECT_EQ(key.host_key, "ssh-ed25519 AAAA x");
  EXPECT_TRUE(key.fresh);
  EXPECT_FALSE(key.seen);
}

// The text would be written into the file of trusted host keys.
TEST(LeaseAnswer, AKeyThatIsMoreThanAKeyIsNone) {
  for (const char* key : {"", "ssh-rsa AAAA", "ssh-ed25519 ", "ssh-ed25519 A\\n* ssh-ed25519 B",
                          "@cert-authority * ssh-ed25519 A"})
    EXPECT_EQ(read_key_answer(std::string("{") + kState + R"(, "host_key": ")" + key + "\"}").error,
              "the answer has no host key")
        << key;
}

TEST(LeaseAnswer, AnErrorIsToldPrintably) {
  EXPECT_EQ(read_key_answer(R"({"error": "sudo\u001b[2J"})").error, "sudo\\x1b[2J");
  EXPECT_FALSE(read_lease_state("[]"));
  EXPECT_FALSE(read_lease_state("{}"));
  EXPECT_FALSE(read_lease_state(R"({"state": 5})"));
}

TEST(FirstContact, WithoutMachinesIsOverAtOnce) {
  const auto none = make_first_contact({});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
}

}  // namespace
}  // namespace lockstep::rent
