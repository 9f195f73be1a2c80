#include "hosts/python_call.h"

#include <gtest/gtest.h>

namespace lockstep::hosts {
namespace {

std::string frame(char kind, std::string_view content) {
  std::string bytes(1, kind);
  for (int i = 0; i < 4; ++i)
    bytes.push_back(static_cast<char>(content.size() >> (8 * i)));
  return bytes + std::string(content);
}

TEST(FunctionName, IsAModuleAndANameInIt) {
  const auto name = parse_function_name("pkg.mod_2:Trainer.fit");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->module, "pkg.mod_2");
  EXPECT_EQ(name->name, "Trainer.fit");
  for (const char* bad : {"", "train", "train:", ":main", "a..b:c", "a:b:c", "a b:c", "2a:b",
                          "a:b\n", "a/b:c", "a:b;c"})
    EXPECT_FALSE(parse_function_name(bad)) << bad;
}

TEST(CallRequest, IsAHeaderAnEmptyLineAndTheArguments) {
  PythonCall call{.function = {"train", "main"}, .arguments = R"({"args":[1]})"};
  call.path = {".", ".."};
  call.root = "..";
  call.output_to_stderr = true;
  EXPECT_EQ(call_request(call),
            "module train\nfunction main\nvalues json\nroot ..\npath .\npath ..\nstdout stderr\n\n"
            R"({"args":[1]})");
}

TEST(CallAnswer, AValueComesInPartsAndCountsOnceItIsWhole) {
  const std::string parts = frame('v', std::string(300, 'x')) + frame('v', "yz");
  EXPECT_EQ(parse_call_answer(parts).kind, CallAnswer::Kind::none);
  const CallAnswer whole = parse_call_answer(parts + frame('k', ""));
  EXPECT_EQ(whole.kind, CallAnswer::Kind::value);
  EXPECT_EQ(whole.text, std::string(300, 'x') + "yz");
}

TEST(CallAnswer, AnErrorEndsWhatWasBegun) {
  EXPECT_EQ(parse_call_answer(frame('v', "[1,") + frame('r', "no JSON")).text, "no JSON");
  EXPECT_EQ(parse_call_answer(frame('e', "{}")).kind, CallAnswer::Kind::raised);
}

TEST(CallAnswer, WhereThereIsNoPythonTheBinaryAnswers) {
  const CallAnswer answer = parse_call_answer(refused_answer("there is no python3"));
  EXPECT_EQ(answer.kind, CallAnswer::Kind::refused);
  EXPECT_EQ(answer.text, "there is no python3");
}

TEST(CallAnswer, NonsenseIsNoAnswer) {
  for (const std::string& bytes :
       {std::string(), std::string("k"), std::string("\xff\xff\xff\xff\xff"), frame('z', "?"),
        frame('v', "abc").substr(0, 6)})
    EXPECT_EQ(parse_call_answer(bytes).kind, CallAnswer::Kind::none);
}

}  // namespace
}  // namespace lockstep::hosts
