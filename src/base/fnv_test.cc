#include "base/fnv.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// From the test vectors of FNV's authors. File names are made from these values, and other versions
// of this program must find the files again.
TEST(Fnv, IsAsPublished) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8);
  EXPECT_NE(fnv1a("\xff"), fnv1a("\x7f"));
}

}  // namespace
}  // namespace lockstep
