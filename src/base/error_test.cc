#include "base/error.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <errno.h>

namespace lockstep {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(Errc::invalid_input, "odd", "give an even number");
  return value / 2;
}

Result<int> quarter(int value) {
  LOCKSTEP_TRY_ASSIGN(const int once, half(value));
  LOCKSTEP_TRY(half(once));
  return half(once);
}

TEST(Error, TryPassesValuesAndErrorsOn) {
  EXPECT_EQ(*quarter(8), 2);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(code_of(quarter(6)), Errc::invalid_input);
  EXPECT_EQ(quarter(6).error().hint, "give an even number");
}

TEST(Error, ErrnoChoosesTheCodeByRemedy) {
  EXPECT_EQ(fail_sys("open x", ENOENT).value().code, Errc::not_found);
  EXPECT_EQ(fail_sys("open x", ENOENT).value().message, "open x: No such file or directory");
  EXPECT_EQ(fail_sys("bind", EADDRINUSE).value().code, Errc::already_exists);
  EXPECT_EQ(fail_sys("open", EMFILE).value().code, Errc::exhausted);
}

TEST(Error, WithinSaysWhatWasBeingDone) {
  EXPECT_EQ(fail(Errc::timeout, "no answer").value().within("join").message, "join: no answer");
}

}  // namespace
}  // namespace lockstep
