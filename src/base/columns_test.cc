#include "base/columns.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Columns, AsWideAsTheWidestEntry) {
  EXPECT_EQ(columns_text<3>({{"NODE", "CPUS", "GPUS"}, {"n1", "128", ""}, {"", "", "a"}}),
            "NODE  CPUS  GPUS\nn1    128\n            a\n");
  EXPECT_EQ(columns_text<1>({{""}}), "\n");
  EXPECT_EQ(columns_text<2>({}), "");
}

}  // namespace
}  // namespace lockstep
