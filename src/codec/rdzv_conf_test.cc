#include "codec/rdzv_conf.h"

#include <gtest/gtest.h>

namespace lockstep::codec {
namespace {

TEST(RdzvConf, Reads) {
  EXPECT_EQ(parse_rdzv_conf("").value(), RdzvConf());
  EXPECT_EQ(parse_rdzv_conf("  \n").value(), RdzvConf());
  EXPECT_EQ(parse_rdzv_conf(" a = 1 , b=x=y ").value(), (RdzvConf{{"a", "1"}, {"b", "x=y"}}));
  EXPECT_EQ(parse_rdzv_conf("a=1,a=2").value(), (RdzvConf{{"a", "2"}}));
}

TEST(RdzvConf, Refuses) {
  const struct {
    const char* text;
    const char* words;
  } rows[] = {
      {"a", "option 'a' must have a value specified"},
      {"a=", "option 'a' must have a value specified"},
      {"a= ,b=1", "option 'a' must have a value specified"},
      {"=1", "must be in format <key1>=<value1>"},
      {"a=1,", "must be in format <key1>=<value1>"},
      {",", "must be in format <key1>=<value1>"},
  };
  for (const auto& row : rows) {
    const auto conf = parse_rdzv_conf(row.text);
    ASSERT_FALSE(conf) << row.text;
    EXPECT_NE(conf.error().message.find(row.words), std::string::npos) << conf.error().message;
  }
}

TEST(RdzvConf, Integers) {
  const RdzvConf conf = {{"a", "12"}, {"b", "x"}};
  EXPECT_EQ(rdzv_conf_int(conf, "a").value(), 12);
  EXPECT_EQ(rdzv_conf_int(conf, "none").value(), std::nullopt);
  const auto bad = rdzv_conf_int(conf, "b");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("does not represent a valid integer value"),
            std::string::npos);
}

TEST(RdzvConf, Booleans) {
  for (const char* yes : {"1", "true", "T", "Yes", "y"})
    EXPECT_EQ(rdzv_conf_bool({{"k", yes}}, "k").value(), true) << yes;
  for (const char* no : {"0", "False", "f", "NO", "n"})
    EXPECT_EQ(rdzv_conf_bool({{"k", no}}, "k").value(), false) << no;
  EXPECT_EQ(rdzv_conf_bool({}, "k").value(), std::nullopt);
  EXPECT_FALSE(rdzv_conf_bool({{"k", "2"}}, "k"));
}

}  // namespace
}  // namespace lockstep::codec
