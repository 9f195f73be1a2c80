// Python 3.11 printed the expected texts for Template(text).safe_substitute(local_rank="7").
#include "codec/python_template.h"

#include <gtest/gtest.h>

namespace lockstep::codec {
namespace {

TEST(PythonTemplate, SubstitutesAsPythonDoes) {
  const TemplateNames names = {{"local_rank", "7"}};
  const struct {
    const char* text;
    const char* expected;
  } rows[] = {
      {"", ""},
      {"plain", "plain"},
      {"${local_rank}", "7"},
      {"$local_rank", "7"},
      {"--rank=${local_rank}/$local_rank.", "--rank=7/7."},
      {"$local_rankx", "$local_rankx"},
      {"${local_rank}x", "7x"},
      {"$local_rank-x", "7-x"},
      {"$$", "$"},
      {"$$local_rank", "$local_rank"},
      {"$$$local_rank", "$7"},
      {"$", "$"},
      {"a$", "a$"},
      {"${", "${"},
      {"${}", "${}"},
      {"${local_rank", "${local_rank"},
      {"${local_rank ", "${local_rank "},
      {"${ local_rank}", "${ local_rank}"},
      {"${HOME}/x", "${HOME}/x"},
      {"$HOME$local_rank", "$HOME7"},
      {"$1", "$1"},
      {"${${local_rank}}", "${7}"},
      {"$LOCAL_RANK", "$LOCAL_RANK"},
      {"\xc3\xa9$local_rank\xff",
       "\xc3\xa9"
       "7\xff"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(substitute(row.text, names), row.expected) << row.text;
}

TEST(PythonTemplate, ValuesAreNotSubstitutedAgain) {
  EXPECT_EQ(substitute("$a$b", {{"a", "$b"}, {"b", "x"}}), "$bx");
}

TEST(PythonTemplate, TellsUnknownNames) {
  EXPECT_EQ(unknown_names("$a ${b} $$c ${d $ ${} $1 $b", {{"a", "1"}}),
            (std::vector<std::string>{"b", "b"}));
}

}  // namespace
}  // namespace lockstep::codec
