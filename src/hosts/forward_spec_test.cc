#include "hosts/forward_spec.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::hosts {
namespace {

std::string read(std::string_view text) {
  const auto spec = parse_forward_spec(text);
  return spec ? fmt::format("{} {} {}", spec->local, spec->host, spec->port) : "refused";
}

TEST(ForwardSpec, IsReadInItsForms) {
  EXPECT_EQ(read("8888"), "8888 localhost 8888");
  EXPECT_EQ(read("8080:80"), "8080 localhost 80");
  EXPECT_EQ(read("0:80"), "0 localhost 80");
  EXPECT_EQ(read("1:db.lan:5432"), "1 db.lan 5432");
  EXPECT_EQ(read("1:[::1]:2"), "1 ::1 2");
}

TEST(ForwardSpec, NonsenseIsRefused) {
  for (const char* text : {"", "0", "x", "80:", ":80", "1:2:3:4", "1::2", "65536", "1:65536", "1:0",
                           "-1:5", "+1:5", "1:a b:2", "1:[]:2", "1:::1:2", "1_0:5"})
    EXPECT_EQ(read(text), "refused") << text;
}

}  // namespace
}  // namespace lockstep::hosts
