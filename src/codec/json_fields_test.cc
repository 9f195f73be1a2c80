#include "codec/json_fields.h"

#include <gtest/gtest.h>

#include <array>

namespace lockstep::codec {

enum class Kind { disk, tape, cloud };
constexpr std::array<std::string_view, 3> kKinds = {"disk", "tape", "cloud"};

struct Part {
  std::string name;
  std::int64_t size = 0;
};
struct Disk {
  std::string path = "/";
  Kind kind = Kind::disk;
  bool open = false;
  int percent = 50;
  std::uint16_t port = 22;
  double seconds = 0;
  std::vector<std::string> words = {};
  std::vector<Part> parts = {};
  std::vector<int> ranks = {};
  std::optional<std::int64_t> budget = {};
  std::optional<Part> spare = {};
  std::map<std::string, Part> named = {};
  std::string label = "none";
};

static void fields(JsonFields& io, Part& part) {
  io("name", part.name);
  io("size", part.size);
}

static void fields(JsonFields& io, Disk& disk) {
  io.needed("path", disk.path);
  io.needed("kind", disk.kind, kKinds);
  io("open", disk.open);
  io("percent", disk.percent, {0, 100});
  io("port", disk.port);
  io("seconds", disk.seconds);
  io("words", disk.words);
  io("parts", disk.parts);
  io("ranks", disk.ranks);
  io("budget", disk.budget);
  io.optional("spare", disk.spare);
  io("named", disk.named);
  io.optional("label", disk.label);
  io.require(disk.path.starts_with('/'), "path", "an absolute path");
}

namespace {

Disk full() {
  return {.path = "/data",
          .kind = Kind::tape,
          .open = true,
          .percent = 7,
          .port = 65'535,
          .seconds = 1.5,
          .words = {"a", "b"},
          .parts = {{"one", 1}, {"two", -2}},
          .ranks = {3, 4},
          .budget = 5,
          .spare = Part{"three", 3},
          .named = {{"x", {"four", 4}}},
          .label = "mine"};
}

const char* const kFull =
    R"({"path":"/data","kind":"tape","open":true,"percent":7,"port":65535,"seconds":1.5,)"
    R"("words":["a","b"],"parts":[{"name":"one","size":1},{"name":"two","size":-2}],)"
    R"("ranks":[3,4],"budget":5,"spare":{"name":"three","size":3},)"
    R"("named":{"x":{"name":"four","size":4}},"label":"mine"})";

// Returns kFull with the member `name` replaced by `value`, a JSON text. "": without the member.
nlohmann::json changed(const char* name, const char* value) {
  nlohmann::json json = parse_json(kFull);
  if (*value == '\0')
    json.erase(name);
  else
    json[name] = parse_json(value);
  return json;
}

std::string fault(const nlohmann::json& json, const JsonRules& rules = {}) {
  Disk disk;
  const Status read = read_fields(json, disk, rules);
  return read ? "" : read.error().message;
}

Disk tolerant(const nlohmann::json& json) {
  Disk disk = full();
  EXPECT_TRUE(read_fields(json, disk, kTolerantJson));
  return disk;
}

TEST(JsonFields, MembersAreWrittenInTheOrderOfTheList) {
  EXPECT_EQ(print_json(write_fields(full())), kFull);
}

TEST(JsonFields, WhatWasWrittenIsRead) {
  Disk disk;
  ASSERT_TRUE(read_fields(parse_json(kFull), disk));
  EXPECT_EQ(print_json(write_fields(disk)), kFull);
  disk = {};
  ASSERT_TRUE(read_fields(parse_json(kFull), disk, kTolerantJson));
  EXPECT_EQ(print_json(write_fields(disk)), kFull);
}

TEST(JsonFields, UnsetOptionalsAreNullOrMissing) {
  Disk disk = full();
  disk.budget.reset();
  disk.spare.reset();
  const auto json = write_fields(disk);
  EXPECT_TRUE(json["budget"].is_null());
  EXPECT_FALSE(json.contains("spare"));
  Disk read = full();
  ASSERT_TRUE(read_fields(json, read));
  EXPECT_FALSE(read.budget);
  EXPECT_TRUE(read.spare);  // a missing optional member leaves the value
}

TEST(JsonFields, AStrictReaderNamesTheMemberAtFault) {
  EXPECT_EQ(fault(parse_json(kFull)), "");
  EXPECT_EQ(fault(parse_json("[]")), "it is no object");
  EXPECT_EQ(fault(parse_json("not JSON")), "it is no object");
  EXPECT_EQ(fault(changed("path", "")), "'path' is not a text");
  EXPECT_EQ(fault(changed("path", "7")), "'path' is not a text");
  EXPECT_EQ(fault(changed("path", R"("x")")), "'path' is not an absolute path");
  EXPECT_EQ(fault(changed("kind", R"("x")")), "'kind' is not a known word");
  EXPECT_EQ(fault(changed("open", "1")), "'open' is not true or false");
  EXPECT_EQ(fault(changed("percent", "1.5")), "'percent' is not a number");
  EXPECT_EQ(fault(changed("percent", "101")), "'percent' is not a number from 0 to 100");
  EXPECT_EQ(fault(changed("port", "-1")), "'port' is not a number from 0 to 65535");
  EXPECT_EQ(fault(changed("seconds", "null")), "'seconds' is not a number");
  EXPECT_EQ(fault(changed("words", "{}")), "'words' is not a list");
  EXPECT_EQ(fault(changed("words", "[1]")), "'words' is not a list of texts");
  EXPECT_EQ(fault(changed("parts", "[{\"name\":\"\",\"size\":0},{\"name\":\"\"}]")),
            "'parts[1].size' is not a number");
  EXPECT_EQ(fault(changed("parts", "[7]")), "'parts[0]' is not an object");
  EXPECT_EQ(fault(changed("ranks", "[1,\"\"]")), "'ranks[1]' is not a number");
  EXPECT_EQ(fault(changed("budget", "\"\"")), "'budget' is not a number");
  EXPECT_EQ(fault(changed("spare", "7")), "'spare' is not an object");
  EXPECT_EQ(fault(changed("named", "{\"a\":{}}")), "'named.a.name' is not a text");
  EXPECT_EQ(fault(changed("label", "7")), "'label' is not a text");
  EXPECT_EQ(fault(changed("label", "")), "");
}

TEST(JsonFields, NumbersThatFitInNoMemberAreOutOfRange) {
  EXPECT_NE(fault(changed("budget", "9223372036854775808")), "");
  EXPECT_EQ(tolerant(changed("budget", "18446744073709551615")).budget, INT64_MAX);
  EXPECT_EQ(fault(changed("budget", "9223372036854775807")), "");
}

TEST(JsonFields, ATolerantReaderKeepsWhatItCannotRead) {
  EXPECT_EQ(tolerant(changed("open", "")).open, true);
  EXPECT_EQ(tolerant(changed("open", "7")).open, true);
  EXPECT_EQ(tolerant(changed("percent", "\"\"")).percent, 7);
  EXPECT_EQ(tolerant(changed("percent", "-5")).percent, 0);
  EXPECT_EQ(tolerant(changed("port", "70000")).port, 65'535);
  EXPECT_EQ(tolerant(changed("words", "[1,\"c\",{}]")).words, std::vector<std::string>{"c"});
  EXPECT_EQ(tolerant(changed("words", "7")).words.size(), 2U);
  EXPECT_EQ(tolerant(changed("ranks", "[1,\"c\",2]")).ranks, (std::vector{1, 2}));
  EXPECT_EQ(tolerant(changed("budget", "null")).budget, std::nullopt);
  const auto parts = tolerant(changed("parts", "[{\"size\":3},7]")).parts;
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].size, 3);
}

TEST(JsonFields, ATolerantReaderNeedsSomeMembers) {
  EXPECT_EQ(fault(changed("path", ""), kTolerantJson), "'path' is not a text");
  EXPECT_EQ(fault(changed("path", R"("x")"), kTolerantJson), "'path' is not an absolute path");
  EXPECT_EQ(fault(changed("kind", R"("x")"), kTolerantJson), "'kind' is not a known word");
  EXPECT_EQ(fault(changed("kind", ""), kTolerantJson), "'kind' is not a text");
  EXPECT_EQ(fault(parse_json("7"), kTolerantJson), "it is no object");
}

TEST(JsonFields, TextsOfAPeerCanBeMadePrintable) {
  Disk disk;
  nlohmann::json json = changed("words", R"(["a\u001b[31m","bcd"])");
  json["path"] = "/\n";
  ASSERT_TRUE(read_fields(json, disk, {.printable = 40}));
  EXPECT_EQ(disk.words[0], "a\\x1b[31m");
  EXPECT_EQ(disk.path, "/\\x0a");
}

TEST(JsonFields, TextsAndListsAreBounded) {
  EXPECT_EQ(fault(parse_json(kFull), {.text = 5, .list = 2}), "");
  EXPECT_EQ(fault(parse_json(kFull), {.text = 4}), "'path' is not at most 4 bytes");
  EXPECT_EQ(fault(parse_json(kFull), {.list = 1}), "'words' is not a list");
  EXPECT_EQ(fault(changed("words", R"(["long one"])"), {.text = 5}),
            "'words' is not a list of texts");
  EXPECT_EQ(fault(changed("named", R"({"a":{},"b":{},"c":{}})"), {.list = 2}),
            "'named' is not an object");
}

}  // namespace
}  // namespace lockstep::codec
