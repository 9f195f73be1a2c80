#include "codec/json.h"

#include <gtest/gtest.h>

#include <time.h>

#include <string>

namespace lockstep::codec {
namespace {

std::string many(std::size_t count, const std::string& one) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += one;
  return text;
}

// Returns {"0":0,"1":0,...}, or an object with a repeated name.
std::string members(std::size_t count, bool same = false) {
  std::string text = "{";
  for (std::size_t i = 0; i < count; ++i)
    text += (i > 0 ? ",\"" : "\"") + (same ? "k" : std::to_string(i)) + "\":0";
  return text + "}";
}

// Returns the CPU time of this thread, which a busy machine does not change.
double cpu_seconds() {
  struct timespec now {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

bool reads(const std::string& text, const JsonLimits& limits) {
  const bool good = !parse_json(text, limits).is_discarded();
  EXPECT_EQ(good, !parse_ordered_json(text, limits).is_discarded()) << text.substr(0, 100);
  return good;
}

TEST(Json, ReadsWhatOthersWrite) {
  const std::string text =
      R"( {"b":[1,-2,3.5,true,null,"\u00e4",[],{}],"a":{"c":18446744073709551615}} )";
  EXPECT_EQ(parse_json(text), nlohmann::json::parse(text));
  EXPECT_EQ(parse_ordered_json(text), nlohmann::ordered_json::parse(text));
  EXPECT_EQ(print_json(parse_ordered_json(text)),
            R"({"b":[1,-2,3.5,true,null,"ä",[],{}],"a":{"c":18446744073709551615}})");
  EXPECT_EQ(print_json(parse_ordered_json(text), JsonText::ascii).find("ä"), std::string::npos);
  EXPECT_EQ(print_json(parse_json("7"), JsonText::utf8, 2), "7");
}

TEST(Json, IsDiscardedWhereItIsNone) {
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\":}", "{} x", "nul", "1e999", "\"\xff\"",
                           "\"\\ud800\"", "{1:2}", "]", "NaN"}) {
    EXPECT_FALSE(reads(text, {})) << text;
    EXPECT_FALSE(parse_json(text).is_object());
  }
}

TEST(Json, TheLastOfTheSameNameCounts) {
  const std::string text = R"({"a":1,"b":{"x":1},"a":2,"c":3,"b":[4],"a":5})";
  EXPECT_EQ(print_json(parse_json(text)), R"({"a":5,"b":[4],"c":3})");
  EXPECT_EQ(print_json(parse_ordered_json(text)), R"({"a":5,"b":[4],"c":3})");
}

TEST(Json, IsRefusedBeyondALimit) {
  const JsonLimits small{.bytes = 40, .depth = 3, .members = 4, .values = 8};
  EXPECT_TRUE(reads("[[[1]],{\"a\":{}}]", small));
  EXPECT_FALSE(reads("[[[[1]]]]", small));
  EXPECT_FALSE(reads("{\"a\":[{\"a\":[]}]}", small));
  EXPECT_TRUE(reads("[1,2,3,4]", small));
  EXPECT_FALSE(reads("[1,2,3,4,5]", small));
  EXPECT_FALSE(reads("[[],[],[],[],[]]", small));
  EXPECT_TRUE(reads(members(4), small));
  EXPECT_FALSE(reads(members(5, true), small));
  EXPECT_TRUE(reads("[[1,2],[1,2],3]", small));
  EXPECT_FALSE(reads("[[1,2],[1,2],3,4]", small));
  EXPECT_TRUE(reads("\"" + many(38, "x") + "\"", small));
  EXPECT_FALSE(reads("\"" + many(39, "x") + "\"", small));
}

TEST(Json, DepthCostsNoStack) {
  EXPECT_FALSE(reads(many(130'000, "["), {}));
  EXPECT_FALSE(reads(many(130'000, "{\"a\":"), {}));
  EXPECT_TRUE(reads(many(64, "[") + many(64, "]"), {}));
}

TEST(Json, PrintsBytesThatAreNoText) {
  EXPECT_EQ(print_json(nlohmann::json("a\xff"), JsonText::ascii), R"("a\ufffd")");
  EXPECT_EQ(print_json(nlohmann::ordered_json("a\xff")), "\"a\xEF\xBF\xBD\"");
}

// Each text takes milliseconds. A parser that searches or copies everything for each new value
// would take minutes.
TEST(Json, WorkIsLinear) {
  // Nest objects, each with many more members after the inner object. A container that grows would
  // copy the inner objects again and again.
  std::string nested = members(20'000);
  for (int depth = 1; depth < 64; ++depth) {
    nested.insert(0, "{\"in\":");
    nested += "," + members(1000).substr(1);
  }
  std::string escapes = "\"";
  escapes += many(170'000, "\\u00e4") + "\"";
  for (const std::string& text :
       {members(100'000), members(100'000, true), nested, escapes, many(60, "[") + many(60, "]"),
        "[" + many(120'000, "[],") + "1]", "[" + many(120'000, "{},") + "1]",
        "[" + many(50'000, "1.23456789e-300,") + "1]"}) {
    const double before = cpu_seconds();
    EXPECT_TRUE(reads(text, {}));
    const double used = cpu_seconds() - before;
    EXPECT_LT(used, 10) << text.substr(0, 20);
    RecordProperty(text.substr(0, 10), std::to_string(used));
  }
}

}  // namespace
}  // namespace lockstep::codec
