#include "looks/question.h"

#include <gtest/gtest.h>

namespace lockstep::looks {
namespace {

TEST(Question, IsReadBack) {
  EXPECT_EQ(print_question({}), "");
  // Older agents know these words.
  EXPECT_EQ(print_question({.rank = 3}), "rank=3");
  for (const Question& question :
       {Question{}, Question{.rank = 0}, Question{.threads = true}, Question{.native = true},
        Question{.rank = 7, .native = true}, Question{.threads = true, .native = true}})
    EXPECT_EQ(read_question(print_question(question)), question);
}

TEST(Question, OfANewerCommandIsReadAsFarAsItIsKnown) {
  EXPECT_EQ(read_question("locals&rank=3&deep=7&native"), (Question{.rank = 3, .native = true}));
  for (const char* text : {"", "&&", "rank=", "rank=-1", "rank=x", "rank=99999999999", "thread",
                           "rank", "Threads", "native=1"})
    EXPECT_EQ(read_question(text), Question{}) << text;
}

}  // namespace
}  // namespace lockstep::looks
