#include "ssh/pins.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::ssh {
namespace {

TEST(Pins, ALineNamesAddressAndPortAndNoComment) {
  EXPECT_EQ(pin_line("10.0.0.5", 22, "ssh-ed25519 AAAA lockstep-host\n"),
            "10.0.0.5 ssh-ed25519 AAAA");
  EXPECT_EQ(pin_line("10.0.0.5", 2222, "ssh-ed25519 AAAA"), "[10.0.0.5]:2222 ssh-ed25519 AAAA");
  EXPECT_EQ(pin_line("2001:db8::1", 22, "ssh-ed25519 AAAA"), "2001:db8::1 ssh-ed25519 AAAA");
}

TEST(Pins, AKeyTakesThePlaceOfTheOldOneOfThatAddressAlone) {
  const std::string text =
      "# 10.0.0.5 ssh-ed25519 O\n10.0.0.5 ssh-ed25519 A\n[10.0.0.5]:7 ssh-ed25519 B\n"
      "10.0.0.50 ssh-rsa C";
  EXPECT_EQ(with_pins(text, "10.0.0.5", 22, {.keys = {"ssh-ed25519 D x"}}),
            "[10.0.0.5]:7 ssh-ed25519 B\n10.0.0.50 ssh-rsa C\n10.0.0.5 ssh-ed25519 D\n");
  EXPECT_EQ(with_pins(text, "10.0.0.5", 7, {}),
            "# 10.0.0.5 ssh-ed25519 O\n10.0.0.5 ssh-ed25519 A\n10.0.0.50 ssh-rsa C\n");
  EXPECT_EQ(with_pins("", "h", 22, {.keys = {"ssh-ed25519 D"}}), "h ssh-ed25519 D\n");
}

TEST(Pins, WhileAKeyIsExchangedBothAreGoodAndTheFirstIsRemembered) {
  const Pins pins{.keys = {"ssh-ed25519 A", "ssh-ed25519 B"}, .origin = "ssh-ed25519 A"};
  const std::string text = with_pins("x ssh-rsa C\n", "10.0.0.5", 22, pins);
  EXPECT_EQ(text,
            "x ssh-rsa C\n# 10.0.0.5 ssh-ed25519 A\n10.0.0.5 ssh-ed25519 A\n"
            "10.0.0.5 ssh-ed25519 B\n");
  const Pins again = pins_in(text, "10.0.0.5", 22);
  EXPECT_EQ(again.keys, pins.keys);
  EXPECT_EQ(again.origin, pins.origin);
  EXPECT_TRUE(pins_in(text, "10.0.0.5", 2222).keys.empty());
}

TEST(Pins, AFileIsMadeAndKept) {
  std::string folder = std::filesystem::temp_directory_path() / "lockstep-pins-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/pins";
  EXPECT_TRUE(read_pins(file, "a", 22)->keys.empty());
  EXPECT_TRUE(pin_host(file, "a", 22, {.keys = {"ssh-ed25519 A"}}));
  EXPECT_TRUE(pin_host(file, "b", 22, {.keys = {"ssh-ed25519 B"}}));
  EXPECT_TRUE(pin_host(file, "a", 22, {.keys = {"ssh-ed25519 C"}}));
  EXPECT_EQ(io::read_file(file).value(), "b ssh-ed25519 B\na ssh-ed25519 C\n");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::ssh
