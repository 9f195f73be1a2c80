#include "codec/pickle.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace lockstep::codec {
namespace {
using Kind = PickleValue::Kind;
using namespace std::string_literals;

const std::vector<PickleGlobal> kAllowed = {{"m", "Class"}, {"datetime", "datetime"}};

// Prints a value as Python would, and an instance as Class(args){attributes}.
std::string show(const Pickled& value);

std::string show_all(const Pickled& value, std::size_t from, std::string_view between) {
  std::string text;
  for (std::size_t i = from; i < value->items.size(); ++i) {
    if (i > from) text += (i - from) % 2 == 0 ? "," : between;
    text += show(value->items[i]);
  }
  return text;
}

std::string show(const Pickled& value) {
  switch (value->kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return value->number != 0 ? "True" : "False";
    case Kind::integer:
      return std::to_string(value->number);
    case Kind::text:
      return "'" + value->text + "'";
    case Kind::bytes:
      return "b'" + value->text + "'";
    case Kind::global:
      return value->module + "." + value->text;
    case Kind::tuple:
      return "(" + show_all(value, 0, ",") + ")";
    case Kind::dict:
      return "{" + show_all(value, 0, ":") + "}";
    case Kind::set:
      return "set(" + show_all(value, 0, ",") + ")";
    case Kind::object:
      return show(value->items[0]) + show(value->items[1]) + "{" + show_all(value, 2, ":") + "}";
    case Kind::call:
      return show(value->items[0]) + show(value->items[1]) + "!";
    case Kind::list:
      return "[" + show_all(value, 0, ",") + "]";
    case Kind::real:
      break;
  }
  return "?";
}

std::string read(std::string_view body, const PickleLimits& limits = {}) {
  const auto value = read_pickle("\x80\4"s + std::string(body) + ".", kAllowed, limits);
  return value ? show(*value) : value.error().message;
}

TEST(Pickle, EveryOperation) {
  const std::pair<std::string, std::string> cases[] = {
      {"N", "None"},
      {"\x88", "True"},
      {"\x89", "False"},
      {"K\xff", "255"},
      {"M\xff\xff", "65535"},
      {"J\xff\xff\xff\xff", "-1"},
      {"J\0\0\0\x80"s, "-2147483648"},
      {"\x8a\0"s, "0"},
      {"\x8a\1\xff", "-1"},
      {"\x8a\2\xff\0"s, "255"},
      {"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", "9223372036854775807"},
      {"\x8a\x08\0\0\0\0\0\0\0\x80"s, "-9223372036854775808"},
      {"\x8c\2hi", "'hi'"},
      {"X\2\0\0\0hi"s, "'hi'"},
      {"C\2\0\xff"s, "b'\0\xff'"s},
      {")", "()"},
      {"K\1\x85", "(1)"},
      {"K\1K\2\x86", "(1,2)"},
      {"K\1K\2K\3\x87", "(1,2,3)"},
      {"}", "{}"},
      {"}K\1K\2s", "{1:2}"},
      {"}(K\1K\2K\3K\4uK\5K\6s", "{1:2,3:4,5:6}"},
      {"}(u", "{}"},
      {"\x8f", "set()"},
      {"\x8f(K\1K\2\x90(\x90", "set(1,2)"},
      {"\x8c\1m\x8c\5Class\x93", "m.Class"},
      {"\x8c\1m\x8c\5Class\x93)\x81}\x8c\1aK\1sb", "m.Class(){'a':1}"},
      {"\x8c\1m\x8c\5Class\x93)\x81}b", "m.Class(){}"},
      {"\x8c\1m\x8c\5Class\x93K\1\x85R", "m.Class(1)!"},
      {"\x95\1\0\0\0\0\0\0\0N"s, "None"},
  };
  for (const auto& [body, shown] : cases)
    EXPECT_EQ(read(body), shown) << testing::PrintToString(body);
  // A tuple of values from the memo, fetched by short and by long index.
  EXPECT_EQ(read("K\7\x94\x8c\1x\x94h\0\x87"s), "(7,'x',7)");
  EXPECT_EQ(read("K\7\x94\x8c\1x\x94j\1\0\0\0\x87"s), "(7,'x','x')");
}

TEST(Pickle, ProtocolsTwoToFiveAndSeveralFrames) {
  for (const char protocol : {'\2', '\3', '\4', '\5'}) {
    EXPECT_TRUE(read_pickle("\x80"s + protocol + "N.", {})) << int(protocol);
  }
  for (const char protocol : {'\0', '\1', '\6', '\xff'}) {
    const auto value = read_pickle("\x80"s + protocol + "N.", {});
    ASSERT_FALSE(value);
    EXPECT_NE(value.error().message.find("is not one of 2 to 5"), std::string::npos);
  }
  const std::string frames = "\x80\5\x95\3\0\0\0\0\0\0\0K\1\x94\x95\4\0\0\0\0\0\0\0h\0\x86."s;
  EXPECT_EQ(show(read_pickle(frames, {}).value()), "(1,1)");
}

TEST(Pickle, WhatIsMemoizedIsTheThingNotACopy) {
  // The dict is filled after entering the memo. The item shows in both places.
  EXPECT_EQ(read("}\x94K\1K\2sh\0\x86"s), "({1:2},{1:2})");
  // An instance keeps its attributes, whatever happens later to the dict.
  EXPECT_EQ(read("\x8c\1m\x8c\5Class\x93)\x81}\x94\x8c\1aK\1sbh\0\x8c\1bK\2s\x86"s),
            "(m.Class(){'a':1},{'a':1,'b':2})");
}

TEST(Pickle, EverythingElseIsCorruptAndSaysWhere) {
  const std::pair<std::string, std::string> cases[] = {
      {"]", "pickle, offset 2, EMPTY_LIST: an operation that is not accepted"},
      {"cos\nsystem\n", "pickle, offset 2, GLOBAL: an operation that is not accepted"},
      {"K\1P", "pickle, offset 4, PERSID: an operation that is not accepted"},
      {"\xf0", "pickle, offset 2, 0xf0: an operation that is not accepted"},
      {"\x80\4N", "pickle, offset 2, PROTO: an operation that is not accepted"},
      {"\x8c\2os\x8c\6system\x93",
       "pickle, offset 14, STACK_GLOBAL: the global 'os.system' is not accepted"},
      {"\x8c\1m\x8c\7Class.x\x93",
       "pickle, offset 14, STACK_GLOBAL: the global 'm.Class.x' is not accepted"},
      {"K\1\x8c\1m\x93", "pickle, offset 7, STACK_GLOBAL: module and name are not both texts"},
      {"K\1)R", "pickle, offset 5, REDUCE: the callee is not a global"},
      {"K\1)\x81", "pickle, offset 5, NEWOBJ: the callee is not a global"},
      {"\x8c\1m\x8c\5Class\x93}R", "pickle, offset 14, REDUCE: the arguments are not a tuple"},
      {"}}b", "pickle, offset 4, BUILD: attributes for a value that is not an instance"},
      {"\x8c\1m\x8c\5Class\x93)\x81)b", "pickle, offset 16, BUILD: the attributes are not a dict"},
      {"\x8c\1m\x8c\5Class\x93)\x81}K\1K\1sb",
       "pickle, offset 21, BUILD: an attribute's name is not a text"},
      {"\x8c\1m\x8c\5Class\x93)R}b",
       "pickle, offset 16, BUILD: attributes for a value that is not an instance"},
      {"h\0"s, "pickle, offset 2, BINGET: no memo 0"},
      {"N\x94j\1\0\0\0"s, "pickle, offset 4, LONG_BINGET: no memo 1"},
      {"\x94", "pickle, offset 2, MEMOIZE: nothing on the stack"},
      {"N(\x94", "pickle, offset 4, MEMOIZE: nothing on the stack"},
      {"N(\x85", "pickle, offset 4, TUPLE1: too little on the stack"},
      {"}N(Ns", "pickle, offset 6, SETITEM: too little on the stack"},
      {"}u", "pickle, offset 3, SETITEMS: no mark"},
      {"(u", "pickle, offset 3, SETITEMS: nothing to fill before the mark"},
      {"}((u", "pickle, offset 5, SETITEMS: nothing to fill before the mark"},
      {"}(Nu", "pickle, offset 5, SETITEMS: a key without a value"},
      {"}(N\x90", "pickle, offset 5, ADDITEMS: not a set"},
      {"\x8fNNs", "pickle, offset 5, SETITEM: not a dict"},
      {"}}Ns", "pickle, offset 5, SETITEM: a dict or set as a key"},
      {"\x8f(\x8f\x90", "pickle, offset 5, ADDITEMS: a dict or set as a key"},
      {"\x8a\x09"
       "123456789",
       "pickle, offset 2, LONG1: an integer of 9 bytes"},
      {"\x8c\1\xff", "pickle, offset 2, SHORT_BINUNICODE: text that is not UTF-8"},
      {"X\xff\xff\xff\xff", "pickle, offset 2, BINUNICODE: the bytes end too early"},
      {"\x95\xff\xff\xff\xff\xff\xff\xff\xff",
       "pickle, offset 2, FRAME: the frame is longer than what is left"},
      {"", "pickle, offset 2, STOP: not exactly one value is left"},
      {"NN", "pickle, offset 4, STOP: not exactly one value is left"},
      {"N(", "pickle, offset 4, STOP: not exactly one value is left"},
      {"N.", "pickle, offset 3, STOP: bytes follow"},
      {"}\x94K\1h\0s"s, "pickle: a value contains itself"},
  };
  for (const auto& [body, message] : cases)
    EXPECT_EQ(read(body), message);
  EXPECT_EQ(read_pickle("", {}).error().message, "pickle, offset 0, end: the bytes end too early");
  EXPECT_EQ(read_pickle("}.", {}).error().message,
            "pickle, offset 0, EMPTY_DICT: a pickle starts with PROTO");
  EXPECT_EQ(read_pickle("\x80\4N", {}).error().message,
            "pickle, offset 3, end: the bytes end too early");
  EXPECT_EQ(code_of(read_pickle("\x80\4]", {})), Errc::corrupt);
}

TEST(Pickle, BoundsOnBytesDepthAndItems) {
  EXPECT_EQ(read("N", {.max_bytes = 3}), "pickle, offset 0, PROTO: 4 bytes, more than 3");
  EXPECT_EQ(read("N\x85\x85\x85", {.max_depth = 4}), "(((None)))");
  EXPECT_EQ(read("N\x85\x85\x85\x85", {.max_depth = 4}), "pickle: deeper than 4");
  EXPECT_EQ(read("N" + std::string(100'000, '\x85')), "pickle: deeper than 32");
  // A value shared through the memo lies deeper in its second place. The greater depth counts.
  EXPECT_EQ(read("N\x85\x85\x94h\0\x85\x85\x86"s, {.max_depth = 6}), "(((None)),((((None)))))");
  EXPECT_EQ(read("N\x85\x85\x94h\0\x85\x85\x86"s, {.max_depth = 5}), "pickle: deeper than 5");
  EXPECT_EQ(read("NNN\x87", {.max_items = 3}), "pickle, offset 5, TUPLE3: more than 3 values");
  EXPECT_EQ(read("N\x94h\0h\0\x87"s, {.max_items = 3}),
            "pickle, offset 8, TUPLE3: more than 3 values");
  EXPECT_EQ(read("NNN\x87", {.max_items = 4}), "(None,None,None)");
  // Doubling through the memo: 25 tuples of two make a tree of 33 million values.
  std::string doubling = "N\x94";
  for (int i = 0; i < 25; ++i)
    doubling += "h"s + char(i) + "\x86\x94";
  EXPECT_EQ(read(doubling), "pickle: more than 262144 values");
  // This gives the same large dict to many instances.
  std::string many = "}\x94(";
  for (int i = 0; i < 100; ++i)
    many += "\x8c\1aN";
  many += "u\x8c\1m\x8c\5Class\x93\x94";
  for (int i = 0; i < 5000; ++i)
    many += "h\1)\x81h\0b"s;
  EXPECT_NE(read(many).find("BUILD: more than 262144 values"), std::string::npos);
}

TEST(Pickle, ListsAndFloatsOnRequest) {
  const auto kinds = [](const std::string& body) {
    const auto tree = read_pickle_tree("\x80\2" + body + ".", {}, {.lists = true});
    if (!tree) return tree.error().message;
    std::string text;
    for (std::size_t i = 0; i < tree->root().size(); ++i)
      text += std::to_string(static_cast<int>(tree->root()[i].kind())) + " ";
    return text;
  };
  EXPECT_EQ(kinds("](NK\1K\2e"), "0 2 2 ");
  EXPECT_EQ(kinds("]q\0Naq\0h\0q\1a"s).substr(0, 40), "pickle: a value contains itself");
  EXPECT_EQ(kinds("(NNNNt"), "0 0 0 0 ");
  EXPECT_EQ(kinds("Nq\1"), "pickle, offset 3, BINPUT: memo 1 out of turn");
  EXPECT_EQ(kinds("}Na"), "pickle, offset 4, APPEND: not a list");
  EXPECT_EQ(kinds("}]Ns"), "pickle, offset 5, SETITEM: a dict or set as a key");
  EXPECT_EQ(kinds("e"), "pickle, offset 2, APPENDS: no mark");
  EXPECT_EQ(kinds("t"), "pickle, offset 2, TUPLE: no mark");
  EXPECT_EQ(kinds("G123456"), "pickle, offset 2, BINFLOAT: the bytes end too early");
  const std::string pi = "\x80\2G\x40\x09\x21\xfb\x54\x44\x2d\x18."s;
  EXPECT_EQ(read_pickle_tree(pi, {}, {.lists = true})->root().real(), 3.141592653589793);
  EXPECT_FALSE(read_pickle_tree(pi, {}, {}).has_value());
}

TEST(Pickle, WrittenAndReadAgain) {
  const Pickled node =
      pickle_items(Kind::object, {pickle_global(kAllowed[0]), pickle_items(Kind::tuple, {}),
                                  pickle_text("addr"), pickle_text("h\xc3\xb6st")});
  std::vector<Pickled> many;
  for (int i = 0; i < 2500; ++i)
    many.insert(many.end(), {pickle_int(i), pickle_text(std::to_string(i % 300))});
  const Pickled value = pickle_items(
      Kind::dict,
      {pickle_text("node"), node, pickle_text("again"),
       pickle_items(Kind::tuple, {node, pickle_none()}), pickle_text("numbers"),
       pickle_items(Kind::tuple,
                    {pickle_int(-1), pickle_int(std::numeric_limits<std::int64_t>::min()),
                     pickle_int(70000)}),
       pickle_text(std::string(300, 'x')),
       pickle_items(Kind::set, {pickle_bool(true), pickle_bytes("\0\xff"s)}), pickle_text("call"),
       pickle_items(Kind::call, {pickle_global(kAllowed[1]), pickle_items(Kind::tuple, {node})}),
       pickle_text("empty"), pickle_items(Kind::set, {}), pickle_text("many"),
       pickle_items(Kind::dict, many)});
  const std::string bytes = write_pickle(value).value();
  EXPECT_TRUE(bytes.starts_with("\x80\4"));
  const Pickled back = read_pickle(bytes, kAllowed).value();
  EXPECT_EQ(show(back), show(value));
  EXPECT_EQ(write_pickle(back).value(), bytes);
  // The text is written once, and the reader makes a single value of both.
  EXPECT_EQ(bytes.find("h\xc3\xb6st"), bytes.rfind("h\xc3\xb6st"));
  EXPECT_EQ(back->items[1], back->items[3]->items[0]);
}

TEST(Pickle, EqualTextsAndGlobalsAreWrittenOnce) {
  const auto pair = [](const Pickled& a, const Pickled& b) {
    return write_pickle(pickle_items(Kind::tuple, {a, b})).value();
  };
  EXPECT_EQ(pair(pickle_text("hi"), pickle_text("hi")), "\x80\4\x8c\2hi\x94h\0\x86\x94."s);
  EXPECT_EQ(pair(pickle_global({"m", "n"}), pickle_global({"m", "n"})),
            "\x80\4\x8c\1m\x94\x8c\1n\x94\x93\x94h\2\x86\x94."s);
}

TEST(Pickle, EqualContainersStayTwo) {
  const std::string bytes = write_pickle(pickle_items(Kind::tuple, {pickle_items(Kind::set, {}),
                                                                    pickle_items(Kind::set, {})}))
                                .value();
  const Pickled back = read_pickle(bytes, {}).value();
  EXPECT_NE(back->items[0], back->items[1]);
}

TEST(Pickle, WhatCannotBeWritten) {
  const auto refused = [](const Pickled& value, const PickleLimits& limits = {}) {
    const auto bytes = write_pickle(value, limits);
    return bytes ? "" : bytes.error().message.substr(26);
  };
  EXPECT_EQ(refused(nullptr), "no value");
  EXPECT_EQ(refused(pickle_text("\xff")), "text that is not UTF-8");
  EXPECT_EQ(refused(pickle_bytes(std::string(256, 'x'))), "more than 255 bytes");
  EXPECT_EQ(refused(pickle_items(Kind::tuple, std::vector<Pickled>(4, pickle_none()))),
            "a tuple of more than 3");
  EXPECT_EQ(refused(pickle_items(Kind::dict, {pickle_none()})), "a key without a value");
  EXPECT_EQ(refused(pickle_items(Kind::set, {pickle_items(Kind::set, {})})),
            "a dict or set as a key");
  EXPECT_EQ(refused(pickle_items(Kind::call, {pickle_none(), pickle_none()})),
            "an instance or call without class or arguments");
  EXPECT_EQ(
      refused(pickle_items(Kind::object, {pickle_global(kAllowed[0]), pickle_items(Kind::tuple, {}),
                                          pickle_int(1), pickle_int(1)})),
      "an attribute without a name");
  const Pickled pair = pickle_items(Kind::tuple, {pickle_none(), pickle_none()});
  const Pickled pairs = pickle_items(Kind::tuple, {pair, pair});
  EXPECT_EQ(refused(pairs, {.max_depth = 2}), "too deep");
  EXPECT_EQ(refused(pairs, {.max_depth = 3}), "");
  EXPECT_EQ(refused(pairs, {.max_items = 6}), "too large");
  EXPECT_EQ(refused(pairs, {.max_items = 7}), "");
  EXPECT_EQ(refused(pickle_text(std::string(100, 'x')), {.max_bytes = 50}), "too large");
}

}  // namespace
}  // namespace lockstep::codec
