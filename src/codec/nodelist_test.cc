#include "codec/nodelist.h"

#include "base/error_testing.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

namespace lockstep::codec {
namespace {

std::string expanded(std::string_view text) {
  const auto names = expand_nodelist(text);
  return names ? join(*names, " ") : "refused: " + names.error().message;
}

// `scontrol show hostnames` of Slurm 22.05 printed these names. That version refuses text after the
// last bracket, while later versions accept it.
TEST(Nodelist, ExpandsAsSlurmDoes) {
  const struct {
    const char* text;
    const char* names;
  } rows[] = {
      {"n1", "n1"},
      {" n1\n", "n1"},
      {"n1,n2", "n1 n2"},
      {"c1,c1", "c1 c1"},
      {"n[1-3]", "n1 n2 n3"},
      {"n[1,3]", "n1 n3"},
      {"n[3,1-2]", "n3 n1 n2"},
      {"n[08-11]", "n08 n09 n10 n11"},
      {"n[8-11]", "n8 n9 n10 n11"},
      {"n[001-2]", "n001 n002"},
      {"gpu-a[1-2],login,cpu[07,9]", "gpu-a1 gpu-a2 login cpu07 cpu9"},
      {"n[1-2]-ib", "n1-ib n2-ib"},
      {"a[0-1]-b[00-01]-ib0", "a0-b00-ib0 a0-b01-ib0 a1-b00-ib0 a1-b01-ib0"},
      {"a[1-2]b[3-4]c[5-6]", "a1b3c5 a1b3c6 a2b3c5 a2b3c6 a1b4c5 a1b4c6 a2b4c5 a2b4c6"},
      {"a[1-2]b[3-4]c[5]d[7-8]",
       "a1b3c5d7 a1b3c5d8 a2b3c5d7 a2b3c5d8 a1b4c5d7 a1b4c5d8 a2b4c5d7 a2b4c5d8"},
      {"[1-2]", "1 2"},
      {"n[1][2]", "n12"},
      {"a,,b,", "a b"},
      {",a", "a"},
      {"a\t,b c", "a b c"},
      {"n[123456789012345678]", "n123456789012345678"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(expanded(row.text), row.names) << row.text;
}

TEST(Nodelist, Refuses) {
  for (const char* text : {"",
                           " ",
                           ",",
                           "n[",
                           "n[1",
                           "n]",
                           "n[]",
                           "n[1,]",
                           "n[-1]",
                           "n[1-]",
                           "n[a]",
                           "n[3-1]",
                           "n[1-2-3]",
                           "n[[1]]",
                           "n[1 ]",
                           "n[1-99999999]",
                           "n[1-65000],m[1-65000]",
                           "a[1-1000]b[1-1000]",
                           "n[9999999999999999999]",
                           "n[1][1][1][1][1][1][1][1][1]",
                           "n[+1]",
                           "n[1_0]"}) {
    const auto names = expand_nodelist(text);
    EXPECT_FALSE(names) << text;
    if (names) continue;
    EXPECT_EQ(code_of(names), Errc::invalid_input);
    EXPECT_EQ(names.error().message.find('\n'), std::string::npos);
  }
  EXPECT_FALSE(expand_nodelist(std::string(kMaxNodelistBytes + 1, 'a')));
  EXPECT_FALSE(expand_nodelist(std::string(1000, 'a')));
}

TEST(Nodelist, TakesAsManyAsItSays) {
  const auto names = expand_nodelist("n[1-65536]");
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_EQ(names->size(), kMaxNodelistHosts);
  EXPECT_EQ(names->back(), "n65536");
}

// Lists of single names and of single numbers once took half a minute.
TEST(Nodelist, WorkGrowsWithTheNumberOfNames) {
  std::string names = "n0";
  std::string numbers = "n[0";
  for (std::size_t i = 1; i < kMaxNodelistHosts; ++i) {
    names += ",n" + std::to_string(i);
    numbers += "," + std::to_string(i);
  }
  const auto began = std::chrono::steady_clock::now();
  const auto by_name = expand_nodelist(names);
  const auto by_number = expand_nodelist(numbers + "]");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  ASSERT_TRUE(by_name && by_number);
  EXPECT_EQ(*by_name, *by_number);
  EXPECT_EQ(by_name->size(), kMaxNodelistHosts);
}

// Any text is expanded or refused within the limits, and no name contains a character that is
// special in lists.
TEST(Nodelist, RandomTextsEndWithinBounds) {
  const std::string_view alphabet = "an019-,[]-[,]9 ";
  std::mt19937 random(1);
  int good = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string text;
    for (auto left = random() % 16; left > 0; --left)
      text += alphabet[random() % alphabet.size()];
    const auto names = expand_nodelist(text);
    if (!names) continue;
    ++good;
    ASSERT_FALSE(names->empty()) << text;
    ASSERT_LE(names->size(), kMaxNodelistHosts) << text;
    for (const std::string& name : *names) {
      ASSERT_FALSE(name.empty()) << text;
      ASSERT_EQ(name.find_first_of("[], "), std::string::npos) << text;
    }
  }
  EXPECT_GT(good, 1000);
}

}  // namespace
}  // namespace lockstep::codec
